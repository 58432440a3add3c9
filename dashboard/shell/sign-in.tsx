import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { readSignInOptions, signInByLink, startUrl } from "../api/auth.ts";
import { Button } from "../components/button.tsx";
import { ErrorNote } from "../components/error-note.tsx";
import { Notice } from "../components/notice.tsx";
import { linkToken } from "./link-token.ts";

/**
 * Error codes in the server's redirect after a failed sign-in. The provider's own message is not shown, because anyone can write it into
 * the address.
 */
const FAILURES: Readonly<Record<string, string>> = {
  state: "The sign-in was not begun in this browser, took longer than ten minutes, or had ended already. Begin again.",
  denied: "The provider did not let you in.",
  provider: "The provider does not answer. Try again; a link works meanwhile.",
  token: "What the provider sent was not valid. Tell who runs it, with the time; the log of the server has the reason.",
};

/** Sign-in page, which a person who is not signed in sees at every address. */
export function SignIn(): ReactNode {
  useEffect(() => {
    document.title = "Sign in · Postern";
  }, []);
  const [isLinkUntried, setLinkUntried] = useState(linkToken !== undefined);
  const query = new URLSearchParams(location.search);
  return (
    <main className="alone">
      <h1>Sign in</h1>
      {query.has("signed-out") && <Notice kind="good">You are signed out.</Notice>}
      <Failure code={query.get("error")} />
      {isLinkUntried && linkToken !== undefined ? (
        <ByLink token={linkToken} giveUp={() => setLinkUntried(false)} />
      ) : (
        <Ways />
      )}
    </main>
  );
}

function Failure({ code }: { code: string | null }): ReactNode {
  const text = code === null || !Object.hasOwn(FAILURES, code) ? undefined : FAILURES[code];
  return text === undefined ? null : <Notice kind="bad">{text}</Notice>;
}

/** Requires a click, so that an address alone cannot sign this browser in as another person. */
function ByLink({ token, giveUp }: { token: string; giveUp: () => void }): ReactNode {
  const { mutate, error, isPending } = useMutation({
    mutationFn: signInByLink,
    // The page is reloaded, so that no data of another person stays in memory.
    onSuccess: () => location.assign("/dashboard/"),
  });
  if (error !== null) return <ErrorNote error={error} doing="Signing in" again={giveUp} />;
  return (
    <>
      <p>You came by a sign-in link, which works once.</p>
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
  if (error !== null) return <ErrorNote error={error} doing="Asking how to sign in" again={() => void refetch()} />;
  if (data === undefined) return <p className="muted">Asking how to sign in …</p>;
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
        <code>postern dashboard link</code> prints an address that signs you in once, within five minutes. The people
        who run this installation can make one for you.
      </p>
    </>
  );
}

/** Returns the address that the person requested, which the sign-in leads back to. */
const requestedPath = (): string =>
  location.pathname.startsWith("/dashboard/sign-in") ? "/dashboard/" : location.pathname + location.search;
