import { type ReactNode, useState } from "react";
import type { Row } from "../../api/queries.ts";
import { useWorkspace } from "../../api/session.ts";
import { FullTime } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { ChangeApiSettings } from "./change-settings.tsx";
import { USUAL_BYTES } from "./settings-draft.ts";

/** Shows the settings of an API, with the form that changes them. */
export function ApiSettings({ api }: { api: Row<"admin.listApis"> }): ReactNode {
  const needs = useRequired();
  const [isOpen, setIsOpen] = useState(false);
  const { apiId, defaultPrefix, defaultByteLength = USUAL_BYTES, ipAllowList, deleteProtection, keyEncryption } = api;
  return (
    <>
      <DetailList
        facts={[
          [
            "Id",
            <span key="id" className="field-row">
              <code>{apiId}</code> <CopyButton text={apiId} label="Copy id" />
            </span>,
          ],
          ["Default prefix", defaultPrefix === undefined ? muted("none") : <code key="prefix">{defaultPrefix}</code>],
          ["Default length", `${defaultByteLength.toLocaleString("en")} random bytes`],
          [
            "Allowed addresses",
            ipAllowList === undefined ? muted("all") : <code key="addresses">{ipAllowList.join(", ")}</code>,
          ],
          ["Delete protection", deleteProtection ? "on" : "off"],
          ["Recoverable keys", keyEncryption ? "allowed" : "not allowed"],
          ["Created", <FullTime key="created" atMs={api.createdAt} />],
        ]}
      />
      {api.manager === undefined ? (
        <div>
          <Button unusable={needs("api.*.update_api")} onClick={() => setIsOpen(true)}>
            Change the settings
          </Button>
        </div>
      ) : (
        <ByCommand apiId={apiId} />
      )}
      {isOpen && <ChangeApiSettings api={api} onClose={() => setIsOpen(false)} />}
    </>
  );
}

const muted = (text: string): ReactNode => <span className="muted">{text}</span>;

/** Shows the command that changes the settings of a managed API. Its manifest does not contain these settings. */
function ByCommand({ apiId }: { apiId: string }): ReactNode {
  const { workspace } = useWorkspace();
  return (
    <>
      <p className="muted">
        Its manifest does not contain these settings. An administrator can change them from the command line:
      </p>
      <CodeBlock
        label="Change a setting"
        text={`postern api update --id ${apiId} --workspace ${workspace.id} --default-prefix PREFIX`}
      />
    </>
  );
}
