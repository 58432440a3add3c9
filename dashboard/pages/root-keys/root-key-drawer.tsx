import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useRead } from "../../api/queries.ts";
import { FullTime, FullTimeOr } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { Drawer } from "../../components/drawer.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Notice } from "../../components/notice.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { StateOf } from "../../components/state-badge.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { ChangeRootKey, EnableRootKey, NarrowRootKey, RevokeRootKey } from "./change-root-key.tsx";
import { findingText, nameOf, type RootKeyDetails, stateWord } from "./root-key.ts";
import { RotateRootKey } from "./rotate-root-key.tsx";
import { inWords } from "./tuples.ts";
import "./root-keys.css";

/** Details and actions of a root key. */
export function RootKeyDrawer({
  rootKeyId,
  onOpen,
  onClose,
}: {
  rootKeyId: string;
  onOpen: (rootKeyId: string) => void;
  onClose: () => void;
}): ReactNode {
  const read = useRead("admin.getRootKey", { rootKeyId });
  return (
    <Drawer title={read.data === undefined ? "Root key" : nameOf(read.data)} isOpen onClose={onClose}>
      {read.error !== null && (
        <ErrorNote error={read.error} doing="Reading the root key" again={() => void read.refetch()} />
      )}
      {read.data === undefined && read.error === null && <Skeleton heightPx={320} hasRows />}
      {read.data !== undefined && <Details rootKey={read.data} onOpen={onOpen} onClose={onClose} />}
    </Drawer>
  );
}

type Opened = "change" | "rotate" | "enable" | "revoke" | "narrow";

function Details({
  rootKey,
  onOpen,
  onClose,
}: {
  rootKey: RootKeyDetails;
  onOpen: (rootKeyId: string) => void;
  onClose: () => void;
}): ReactNode {
  const needs = useRequired();
  const [opened, setOpened] = useState<Opened>();
  const close = (): void => setOpened(undefined);
  const update = needs("workspace.*.update_root_key");
  const { predecessorId, successorId, narrowTo, findings, uses } = rootKey;
  const usedOn = new Map(uses.map(({ permission, lastUsedOn }) => [permission, lastUsedOn]));
  return (
    <>
      <div className="root-key-filters">
        <Button unusable={update} onClick={() => setOpened("change")}>
          Change
        </Button>
        <Button unusable={update ?? needs("workspace.*.create_root_key")} onClick={() => setOpened("rotate")}>
          Rotate
        </Button>
        <Button unusable={update} onClick={() => setOpened("enable")}>
          {rootKey.enabled ? "Disable" : "Enable"}
        </Button>
        <Button kind="danger" unusable={needs("workspace.*.delete_root_key")} onClick={() => setOpened("revoke")}>
          Revoke
        </Button>
      </div>
      {findings.length > 0 && (
        <Notice
          kind="info"
          actions={
            narrowTo !== undefined && (
              <Button unusable={update} onClick={() => setOpened("narrow")}>
                Restrict …
              </Button>
            )
          }
        >
          <ul>
            {findings.map((finding) => (
              <li key={finding.kind}>
                {findingText(finding)}
                {finding.permissions !== undefined && `: ${finding.permissions.join(", ")}`}
              </li>
            ))}
          </ul>
          {narrowTo !== undefined && <p>It could be restricted to {narrowTo.join(", ")}.</p>}
        </Notice>
      )}
      <DetailList
        facts={[
          ["Id", <code key="id">{rootKey.rootKeyId}</code>],
          ["Start", <code key="start">{rootKey.start}…</code>],
          ["State", <StateOf key="state" state={stateWord(rootKey.state)} />],
          ["Environment", rootKey.environment ?? "none"],
          ["May", inWords(rootKey.permissions)],
          ["Created", <FullTime key="created" atMs={rootKey.createdAt} />],
          ["Expires", <FullTimeOr key="expires" atMs={rootKey.expires} otherwise="never" />],
          ["Last used", rootKey.lastUsedOn === undefined ? "no recorded use" : `${rootKey.lastUsedOn} (UTC day)`],
          ["Called v1", rootKey.v1UsedOn ?? "never"],
          ...(predecessorId === undefined ? [] : [linkTo("Replaces", predecessorId, onOpen)]),
          ...(successorId === undefined ? [] : [linkTo("Replaced by", successorId, onOpen)]),
        ]}
      />
      <h3>Permissions</h3>
      <ul className="tuples">
        {rootKey.permissions.map((tuple) => (
          <li key={tuple}>
            <Tuple tuple={tuple} />
            <span className="muted">{usedOn.has(tuple) ? `used on ${usedOn.get(tuple)}` : "not used"}</span>
          </li>
        ))}
      </ul>
      {rootKey.usesSince !== undefined && (
        <p className="muted">
          Usage is recorded since <FullTime atMs={rootKey.usesSince} />, by UTC day, with a delay of up to a minute.
        </p>
      )}
      {opened === "change" && <ChangeRootKey rootKey={rootKey} onClose={close} />}
      {opened === "rotate" && <RotateRootKey rootKey={rootKey} onClose={close} />}
      {opened === "enable" && <EnableRootKey rootKey={rootKey} onClose={close} />}
      {opened === "narrow" && narrowTo !== undefined && (
        <NarrowRootKey rootKey={rootKey} narrowTo={narrowTo} onClose={close} />
      )}
      {opened === "revoke" && <RevokeRootKey rootKey={rootKey} onClose={close} onRevoked={onClose} />}
    </>
  );
}

/** Shows a permission. A permission for a single API links to the API. */
function Tuple({ tuple }: { tuple: string }): ReactNode {
  const [type, id = "*"] = tuple.split(".");
  const code = <code>{tuple}</code>;
  if (type !== "api" || id === "*") return code;
  return (
    <Link to="/apis/$apiId" params={{ apiId: id }}>
      {code}
    </Link>
  );
}

const linkTo = (label: string, rootKeyId: string, onOpen: (rootKeyId: string) => void) =>
  [
    label,
    <Button key={label} kind="quiet" onClick={() => onOpen(rootKeyId)}>
      {rootKeyId}
    </Button>,
  ] as const;
