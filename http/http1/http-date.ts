let second = 0;
let text = "";

/** Returns the current time as a header value (RFC 9110, 5.6.7), formatted at most once a second. */
export function httpDate(): string {
  const now = Math.floor(Date.now() / 1000);
  if (now !== second) {
    second = now;
    text = new Date(now * 1000).toUTCString();
  }
  return text;
}
