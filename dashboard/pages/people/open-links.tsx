import { type ReactNode, useState } from "react";
import { useChange, usePages } from "../../api/queries.ts";
import { Ago } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { KeyTable } from "../../components/key-table.tsx";
import { useDone } from "../../components/toast.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { roleText, SHOWN_BY, type SignInLink } from "./person.ts";

/** Interval at which the links are read again. A link disappears when someone uses it. */
const ASKED_EVERY_MS = 30_000;

/** Lists the sign-in links that nobody has used yet. Renders nothing if there are none, which is the usual case. */
export function OpenLinks(): ReactNode {
  const needs = useRequired();
  const [revoked, setRevoked] = useState<SignInLink>();
  const { rows, error, hasMore, isLoadingMore, readMore, again } = usePages(
    "admin.listSignInLinks",
    {},
    { everyMs: ASKED_EVERY_MS },
  );
  if (error !== null && rows.length === 0) {
    return <ErrorNote error={error} doing="Reading the sign-in links" again={again} />;
  }
  return (
    <>
      {rows.length > 0 && (
        <section className="open-links" aria-labelledby="open-links">
          <h2 id="open-links">Unused sign-in links</h2>
          <KeyTable label="Links" heads={["For", "Role", "Expires", ""]}>
            {rows.map((link) => (
              <tr key={link.linkId}>
                <td className="cut key-cut" title={link.name}>
                  <bdi>{link.name}</bdi>
                  <div className="field-hint cut" title={link.madeBy}>
                    made by <bdi>{link.madeBy}</bdi>
                  </div>
                </td>
                <td>{roleText(link)}</td>
                <td>
                  <Ago atMs={link.expires} />
                </td>
                <td>
                  <Button unusable={needs("workspace.*.delete_session")} onClick={() => setRevoked(link)}>
                    Revoke
                  </Button>
                </td>
              </tr>
            ))}
          </KeyTable>
          {hasMore && (
            <Button kind="quiet" onClick={readMore} isBusy={isLoadingMore}>
              Load more
            </Button>
          )}
        </section>
      )}
      {revoked !== undefined && <RevokeLink link={revoked} onClose={() => setRevoked(undefined)} />}
    </>
  );
}

function RevokeLink({ link, onClose }: { link: SignInLink; onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const revoke = useChange("admin.deleteSignInLink", { refreshes: SHOWN_BY });
  return (
    <ConfirmDialog
      title={`Revoke the sign-in link for ${link.name}`}
      action="Revoke the link"
      isBusy={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={() =>
        revoke.mutate({ linkId: link.linkId }, { onSuccess: () => done(`Sign-in link for ${link.name} revoked.`) })
      }
    >
      <p>The link stops working at once. If it was used meanwhile, end the session of the person instead.</p>
    </ConfirmDialog>
  );
}
