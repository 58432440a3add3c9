const TOKEN = /^#token=([\w-]+)$/;

/**
 * Token of a sign-in link. It is removed from the address when the page loads, because it must not stay in the browser history or be sent
 * twice by a repeated render.
 */
export const linkToken: string | undefined = takeToken();

function takeToken(): string | undefined {
  const [, token] = TOKEN.exec(location.hash) ?? [];
  if (token !== undefined) history.replaceState(history.state, "", location.pathname + location.search);
  return token;
}
