import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Data } from "../../../core/api/procedures.ts";
import { Ago, FullTimeOr } from "../../components/ago.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { Notice } from "../../components/notice.tsx";
import { StateOf } from "../../components/state-badge.tsx";
import { outcomeInWords } from "../../usage/series.ts";
import type { KeyDetails } from "./details.ts";

type Reason = Data<"admin.getKeyDetails">["state"]["reasons"][number];

/** Shows the result that a verification would have now, and all reasons to reject the key; the first reason decides. */
export function KeyState({ details }: { details: KeyDetails }): ReactNode {
  const { state, ipAllowList, identityDeletedAt } = details;
  const isValid = state.code === "VALID";
  return (
    <Notice kind={isValid ? "good" : "bad"}>
      <p>
        <strong>
          {isValid
            ? "A request now would be admitted"
            : `A request now would be rejected: ${outcomeInWords(state.code)}`}
        </strong>{" "}
        <code>{state.code}</code>
      </p>
      {state.reasons.length > 0 && (
        <ol aria-label="Reasons for the rejection; the first one decides">
          {state.reasons.map((reason) => (
            <li key={reason}>{reasonInWords(reason, details)}</li>
          ))}
        </ol>
      )}
      {ipAllowList !== undefined && (
        <p>
          Only from <code>{ipAllowList.join(", ")}</code>: its API rejects other addresses.
        </p>
      )}
      {identityDeletedAt !== undefined && (
        <p>
          Its identity was deleted <Ago atMs={identityDeletedAt} />: the key works without it, and without its limits.
        </p>
      )}
    </Notice>
  );
}

function reasonInWords(reason: Reason, { deletedAt, apiDeletedAt, key }: KeyDetails): ReactNode {
  switch (reason) {
    case "keyDeleted":
      return <>The key was deleted {deletedAt !== undefined && <Ago atMs={deletedAt} />}. It cannot be used again.</>;
    case "apiDeleted":
      return <>Its API was deleted {apiDeletedAt !== undefined && <Ago atMs={apiDeletedAt} />}.</>;
    case "workspaceDisabled":
      return "The workspace is disabled: none of its keys work.";
    case "disabled":
      return "The key is disabled: enable it to admit its requests again.";
    case "expired":
      return <>It expired {key.expires !== undefined && <Ago atMs={key.expires} />}: set a later expiry.</>;
    case "limitReached":
      return "A limit that counts every request is exhausted; the limits below show when its window ends.";
    case "noCredits":
      return "Its credits are used up: add credits, or wait for the refill.";
  }
}

/** Returns the state of the key itself, regardless of other reasons to reject its requests. */
function stateOfKey({ deletedAt, key }: KeyDetails) {
  if (deletedAt !== undefined) return "deleted";
  if (!key.enabled) return "disabled";
  return key.expires !== undefined && Date.now() > key.expires ? "expired" : "enabled";
}

export function KeyDetailsList({ details }: { details: KeyDetails }): ReactNode {
  const { key, ownerId, apiName, apiId, manager } = details;
  const at = (ms: number | undefined, otherwise: string): ReactNode => <FullTimeOr atMs={ms} otherwise={otherwise} />;
  return (
    <DetailList
      facts={[
        ["Starts with", <code key="start">{key.start}</code>],
        [
          "API",
          <span key="api">
            <Link to="/apis/$apiId" params={{ apiId }}>
              {apiName}
            </Link>{" "}
            ({apiId})
          </span>,
        ],
        [
          "Owner",
          key.identity === undefined ? (
            (ownerId ?? <span className="muted">none</span>)
          ) : (
            <span key="owner">
              {key.identity.externalId} (
              <Link to="/keys" search={{ by: "owner", q: key.identity.externalId }}>
                all keys
              </Link>
              ,{" "}
              <Link to="/usage" search={{ owner: key.identity.externalId }}>
                usage
              </Link>
              )
            </span>
          ),
        ],
        [
          "Identity",
          key.identity === undefined ? (
            <span key="none" className="muted">
              none
            </span>
          ) : (
            <Link key="identity" to="/identities/$identityId" params={{ identityId: key.identity.id }}>
              {key.identity.id}
            </Link>
          ),
        ],
        ["State", <StateOf key="state" state={stateOfKey(details)} />],
        ["Expires", at(key.expires, "never")],
        ["Created", at(key.createdAt, "")],
        ["Changed", at(key.updatedAt, "never")],
        ["Last used", at(key.lastUsedAt, "never, or in the last minutes")],
        ["Manifest", manager ?? <span className="muted">none</span>],
      ]}
    />
  );
}

export function KeyCredits({ details }: { details: KeyDetails }): ReactNode {
  const { credits } = details.key;
  if (credits === undefined) return <p>Unlimited.</p>;
  const { remaining, refill } = credits;
  return (
    <DetailList
      facts={[
        ["Remaining", remaining.toLocaleString("en")],
        [
          "Refill",
          refill === undefined
            ? "none"
            : `${refill.amount.toLocaleString("en")} ${refill.interval === "daily" ? "each day" : `on day ${refill.refillDay ?? 1} of each month`}, at midnight UTC`,
        ],
      ]}
    />
  );
}

export function KeyMeta({ details }: { details: KeyDetails }): ReactNode {
  const { meta } = details.key;
  if (meta === undefined) return <p className="muted">None.</p>;
  return <CodeBlock label="JSON" text={JSON.stringify(meta, null, 2)} />;
}
