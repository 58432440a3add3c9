import { createLazyRoute, getRouteApi, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useRead } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { NO_HASHING } from "../../components/hash-key.ts";
import { Notice } from "../../components/notice.tsx";
import { Page } from "../../components/page.tsx";
import { Select } from "../../components/select.tsx";
import { TextField } from "../../components/text-field.tsx";
import "./explain.css";
import { ExplainedKey } from "./explained-key.tsx";
import { ExplainedRequest } from "./explained-request.tsx";
import { type RequestHeader, readHeaders } from "./request-headers.ts";
import { readSubject } from "./subject.ts";

export const Route = createLazyRoute("/explain")({ component: ExplainPage });
const here = getRouteApi("/explain");

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] as const;
const POLICIES_OFFERED = 100;

/** Parameters of the request to explain; empty ones are not sent. */
interface Circumstances {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly headers: string;
  readonly clientIp: string;
  readonly permissions: string;
  readonly cost: string;
}

const PLAIN: Circumstances = {
  method: "GET",
  path: "/",
  host: "",
  headers: "",
  clientIp: "",
  permissions: "",
  cost: "",
};

function ExplainPage(): ReactNode {
  const { requestId, keyId, policyId, at } = here.useSearch();
  const navigate = useNavigate({ from: "/explain" });
  const [pasted, setPasted] = useState("");
  const [keyHash, setKeyHash] = useState<string>();
  const [fault, setParseError] = useState<string>();
  const [typed, setTyped] = useState(PLAIN);
  const [asked, setAsked] = useState(PLAIN);

  const explain = async (): Promise<void> => {
    setParseError(undefined);
    if (typeof readHeaders(typed.headers) === "string") return;
    setAsked(typed);
    if (pasted.trim() === "") return;
    const subject = await readSubject(pasted);
    if (subject === "NO_HASHING") {
      setParseError(NO_HASHING);
      return;
    }
    // Clears the field, so that the page does not keep a key after hashing it.
    setPasted("");
    setKeyHash(subject?.kind === "secret" ? subject.keyHash : undefined);
    await navigate({
      search: {
        ...(subject?.kind === "request" ? { requestId: subject.requestId } : {}),
        ...(subject?.kind === "key" ? { keyId: subject.keyId } : {}),
        ...(policyId === undefined ? {} : { policyId }),
      },
    });
  };

  const cost = Number(asked.cost);
  const circumstances = {
    ...(policyId === undefined
      ? {
          ...(asked.permissions.trim() === "" ? {} : { permissions: asked.permissions.trim() }),
          ...(asked.cost.trim() === "" || !Number.isSafeInteger(cost) || cost < 0 ? {} : { credits: { cost } }),
        }
      : { policyId, ...requestOf(asked) }),
    ...(asked.clientIp.trim() === "" ? {} : { clientIp: asked.clientIp.trim() }),
  };
  const subject = keyHash === undefined ? (keyId === undefined ? undefined : { keyId }) : { keyHash };

  return (
    <Page
      title="Explain"
      about="Each step that admits or rejects a key. Explaining consumes no limits or credits. A key that you paste is hashed in this browser; it is neither sent nor stored."
    >
      <form
        className="explain-form"
        onSubmit={(event) => {
          event.preventDefault();
          void explain();
        }}
      >
        <TextField
          label="Key, key id or request id"
          value={pasted}
          onChange={setPasted}
          fault={fault}
          placeholder="paste a key or an id"
          isMono
          lengthMax={512}
        />
        <PolicyChoice
          policyId={policyId}
          onChoose={(chosen) =>
            void navigate({
              search: ({ policyId: _before, ...rest }) => (chosen === "" ? rest : { ...rest, policyId: chosen }),
              replace: true,
            })
          }
        />
        {policyId === undefined ? (
          <>
            <TextField
              label="Required permissions"
              value={typed.permissions}
              onChange={(permissions) => setTyped({ ...typed, permissions })}
              placeholder="documents.read AND users.view"
              lengthMax={1000}
            />
            <TextField
              label="Credit cost"
              value={typed.cost}
              onChange={(text) => setTyped({ ...typed, cost: text })}
              placeholder="1"
              inputMode="numeric"
            />
          </>
        ) : (
          <>
            <Select
              label="Method"
              value={typed.method}
              options={METHODS.map((value) => ({ value, label: value }))}
              onChange={(method) => setTyped({ ...typed, method })}
            />
            <TextField label="Path" value={typed.path} onChange={(path) => setTyped({ ...typed, path })} isMono />
            <TextField
              label="Host"
              value={typed.host}
              onChange={(host) => setTyped({ ...typed, host })}
              placeholder="api.example.com"
              lengthMax={255}
              isMono
            />
            <TextField
              label="Headers"
              value={typed.headers}
              onChange={(headers) => setTyped({ ...typed, headers })}
              fault={faultOf(readHeaders(typed.headers))}
              placeholder="X-Api-Version: 2"
              rows={2}
              isMono
            />
          </>
        )}
        <TextField
          label="Client address"
          value={typed.clientIp}
          onChange={(clientIp) => setTyped({ ...typed, clientIp })}
          placeholder="10.0.0.1"
          isMono
        />
        <div className="explain-submit">
          <Button kind="main" type="submit">
            Explain
          </Button>
        </div>
      </form>
      {requestId !== undefined && keyHash === undefined && (
        <ExplainedRequest key={requestId} requestId={requestId} atMs={at} />
      )}
      {subject !== undefined && (keyHash !== undefined || requestId === undefined) && (
        <ExplainedKey body={{ ...subject, ...circumstances }} />
      )}
      {subject === undefined && requestId === undefined && (
        <Notice>
          Paste a key, the id of a key, or the id of a request, which responses have in <code>meta</code>.
        </Notice>
      )}
    </Page>
  );
}

const faultOf = (headers: readonly RequestHeader[] | string): string | undefined =>
  typeof headers === "string" ? headers : undefined;

/** Returns the members of the API call that describe a request at a gate. */
function requestOf({ method, path, host, headers: lines }: Circumstances) {
  const headers = readHeaders(lines);
  return {
    method,
    path: path === "" ? "/" : path,
    ...(host.trim() === "" ? {} : { host: host.trim() }),
    ...(typeof headers === "string" || headers.length === 0 ? {} : { headers: [...headers] }),
  };
}

/** Selects between an API call and a request at the gate of a policy. */
function PolicyChoice({
  policyId,
  onChoose,
}: {
  policyId: string | undefined;
  onChoose: (policyId: string) => void;
}): ReactNode {
  const { data = [] } = useRead("admin.listPolicies", { limit: POLICIES_OFFERED });
  const known = policyId === undefined || data.some((one) => one.policyId === policyId);
  const options = [
    { value: "", label: "a keys.verifyKey call" },
    ...(known ? [] : [{ value: policyId, label: policyId }]),
    ...data.map((one) => ({ value: one.policyId, label: `the gate of ${one.name}` })),
  ];
  return <Select label="Explain as" value={policyId ?? ""} options={options} onChange={onChoose} />;
}
