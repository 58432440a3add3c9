import { useMutation, useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { ApiError } from "../api/api-error.ts";
import { readSignInOptions, signInByLink, startUrl } from "../api/auth.ts";
import { Button } from "../components/button.tsx";
import { ErrorNote } from "../components/error-note.tsx";
import { Notice } from "../components/notice.tsx";

/**
 * Error codes in the server's redirect after a failed sign-in. The provider's own message is not shown, because anyone can write it into
 * the URL.
 */
const FAILURES: Readonly<Record<string, string>> = {
  state:
    "The sign-in was started in another browser, took longer than ten minutes, or is already complete. Start again.",
  denied: "The provider rejected the sign-in.",
  provider: "The provider does not respond. Try again, or use a sign-in link.",
  token:
    "The provider sent an invalid response. Report the time to your administrator; the server's log has the reason.",
};

/** Sign-in page, which a person who is not signed in sees at every URL. */
export function SignIn(): ReactNode {
  useEffect(() => {
    document.title = "Sign in · Postern";
    if (requestedPath() !== HOME) sessionStorage.setItem(REQUESTED, requestedPath());
  }, []);
  const [isLinkUntried, setLinkUntried] = useState(linkToken !== undefined);
  const { error, "signed-out": signedOut } = useSearch({ from: "__root__" });
  return (
    <main className="alone">
      <h1>Sign in</h1>
      {signedOut !== undefined && <Notice kind="good">You are signed out.</Notice>}
      <Failure code={error} />
      {isLinkUntried && linkToken !== undefined ? (
        <ByLink token={linkToken} giveUp={() => setLinkUntried(false)} />
      ) : (
        <Ways />
      )}
    </main>
  );
}

function Failure({ code }: { code: string | undefined }): ReactNode {
  const text = code === undefined || !Object.hasOwn(FAILURES, code) ? undefined : FAILURES[code];
  return text === undefined ? null : <Notice kind="bad">{text}</Notice>;
}

/** Signs in with a link, but only after a click, so that merely opening a URL cannot sign this browser in as another person. */
function ByLink({ token, giveUp }: { token: string; giveUp: () => void }): ReactNode {
  const { mutate, error, isPending } = useMutation({
    mutationFn: signInByLink,
    // Reloads the document, so that no data of another person stays in memory.
    onSuccess: () => location.assign(takeRequestedPath()),
  });
  if (error instanceof ApiError && error.status === 401) {
    return (
      <Notice kind="bad" actions={<Button onClick={giveUp}>Other ways to sign in</Button>}>
        {error.detail} Create another link with <code>postern dashboard link</code>.
      </Notice>
    );
  }
  if (error !== null) return <ErrorNote error={error} doing="Signing in" again={giveUp} />;
  return (
    <>
      <p>This sign-in link works only once.</p>
      <p>
        <Button kind="main" isBusy={isPending} onClick={() => mutate(token)}>
          Sign in with this link
        </Button>
      </p>
    </>
  );
}

function Ways(): ReactNode {
  const { data, error, refetch } = useQuery({
    queryKey: ["sign-in-options"],
    queryFn: ({ signal }) => readSignInOptions(signal),
  });
  if (error !== null)
    return <ErrorNote error={error} doing="Reading the sign-in methods" again={() => void refetch()} />;
  if (data === undefined) return <p className="muted">Reading the sign-in methods …</p>;
  if (data.problem !== null) return <Notice kind="warn">{data.problem}</Notice>;
  return (
    <>
      {data.provider !== null && (
        <p>
          <a className="button button-main" href={startUrl(requestedPath())}>
            Sign in with {data.provider}
          </a>
        </p>
      )}
      <p>
        <code>postern dashboard link</code> prints a link that signs you in once, within five minutes. An administrator
        can create one for you.
      </p>
    </>
  );
}

const HOME = "/dashboard/";
const REQUESTED = "postern.requested";

/** Returns the URL that the person requested. The browser returns to it after the sign-in. */
const requestedPath = (): string =>
  location.pathname.startsWith("/dashboard/sign-in") ? HOME : location.pathname + location.search;

/**
 * Returns and forgets the path that was last requested in this tab without a session. The path of the sign-in link itself does not count.
 */
function takeRequestedPath(): string {
  const path = sessionStorage.getItem(REQUESTED) ?? HOME;
  sessionStorage.removeItem(REQUESTED);
  return path;
}

const TOKEN = /^#token=([\w-]+)$/;

/**
 * Token of a sign-in link. It is removed from the URL when the page loads, because it must not stay in the browser history or be sent twice
 * by a repeated render.
 */
export const linkToken: string | undefined = takeToken();

function takeToken(): string | undefined {
  const [, token] = TOKEN.exec(location.hash) ?? [];
  if (token !== undefined) history.replaceState(history.state, "", location.pathname + location.search);
  return token;
}
