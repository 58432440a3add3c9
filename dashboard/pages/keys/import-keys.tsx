import { type ReactNode, useState } from "react";
import { type ImportState, importKeys, NOT_STARTED } from "../../../core/keys/import-keys.ts";
import { useApi } from "../../api/api-context.ts";
import { ApiError } from "../../api/api-error.ts";
import { useReadAgain } from "../../api/queries.ts";
import { BatchProgress, FailedRows } from "../../components/batch-progress.tsx";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { FileField } from "../../components/file-field.tsx";
import { hashKey, NO_HASHING } from "../../components/hash-key.ts";
import { KeyTable } from "../../components/key-table.tsx";
import { Notice } from "../../components/notice.tsx";
import { useStop } from "../../components/use-stop.ts";
import { FILE_BYTES_MAX, IMPORT_COLUMNS, type ImportRow, type ImportTable, ROWS_MAX, readImport } from "./key-csv.ts";

const PREVIEW_ROWS = 5;

/** Imports keys of another system. The browser reads and hashes them, and sends them in batches. */
export function ImportKeys({
  apiId,
  apiName,
  onClose,
}: {
  apiId: string;
  apiName: string;
  onClose: () => void;
}): ReactNode {
  const api = useApi();
  const readAgain = useReadAgain();
  const [file, setFile] = useState<{ readonly name: string; readonly table: ImportTable }>();
  const [state, setState] = useState<ImportState<ImportRow>>(NOT_STARTED);
  const [error, setError] = useState<unknown>(null);
  const [isRunning, setRunning] = useState(false);
  const { begin, stop } = useStop();
  const rows = file?.table.rows ?? [];
  const isDone = file !== undefined && rows.length > 0 && state.done === rows.length;
  const cannotHash = rows.some(({ secret }) => secret !== undefined) && globalThis.crypto?.subtle === undefined;

  const run = async (): Promise<void> => {
    const signal = begin();
    setRunning(true);
    setError(null);
    try {
      const what = { apiId, name: `Import of ${file?.name ?? "a file"}`.slice(0, 255), rows };
      await importKeys({ what, api, hashOf, problemsOf, report: setState, signal }, state);
    } catch (thrown) {
      if (!signal.aborted) setError(thrown);
    } finally {
      setRunning(false);
      readAgain(["admin.searchKeys", "admin.listApis"]);
    }
  };
  const problems = [
    ...(file?.table.problems ?? []),
    ...state.failed.map(({ row: { line }, problem }) => ({ line, problem })),
  ];
  return (
    <Dialog
      title={`Import keys into ${apiName}`}
      isOpen
      isWide
      keeps={isRunning ? "import" : undefined}
      onClose={onClose}
      actions={
        isRunning ? (
          <Button onClick={stop}>Stop</Button>
        ) : isDone ? undefined : (
          <Button
            kind="main"
            onClick={() => void run()}
            unusable={rows.length === 0 ? "Choose a file with keys." : cannotHash ? NO_HASHING : undefined}
          >
            {state.done > 0
              ? `Continue from row ${(state.done + 1).toLocaleString("en")}`
              : `Import ${rows.length.toLocaleString("en")} keys`}
          </Button>
        )
      }
    >
      <FileField
        label="CSV file"
        accept=".csv,text/csv"
        bytesMax={FILE_BYTES_MAX}
        hint={
          <>
            Up to {ROWS_MAX.toLocaleString("en")} rows. The first line names the columns:{" "}
            <code>{IMPORT_COLUMNS.join(", ")}</code>. One of <code>key</code> and <code>hash</code> (SHA-256 in base64)
            is required. This page hashes the keys and does not send them.
          </>
        }
        onText={(text, name) => {
          setFile({ name, table: readImport(text) });
          setState(NOT_STARTED);
          setError(null);
        }}
      />
      {file !== undefined && file.table.ignored.length > 0 && (
        <Notice>
          Ignored columns: <code>{file.table.ignored.join(", ")}</code>.
        </Notice>
      )}
      {rows.length > 0 && <Preview table={file?.table as ImportTable} />}
      {(isRunning || state.done > 0) && (
        <BatchProgress label="Processed rows" max={rows.length} value={state.done} isRunning={isRunning}>
          {state.done.toLocaleString("en")} of {rows.length.toLocaleString("en")} rows,{" "}
          {state.made.toLocaleString("en")} keys imported, {state.failed.length.toLocaleString("en")} not.
          {isDone ? " Done." : ""}
        </BatchProgress>
      )}
      <FailedRows
        title={`${problems.length.toLocaleString("en")} rows were not imported:`}
        rows={problems.map((one) => ({ ...one }))}
        columns={["line", "problem"]}
        file="not-imported.csv"
        textOf={({ line, problem }) => `Line ${line}: ${problem}`}
      />
      {error !== null &&
        (error instanceof ApiError ? (
          <ErrorNote error={error} doing="Importing the keys" again={() => void run()} />
        ) : (
          <Notice kind="bad">
            {error instanceof Error ? error.message : "The import failed because of an error in this page."}
          </Notice>
        ))}
    </Dialog>
  );
}

async function hashOf(secret: string): Promise<string> {
  const hash = await hashKey(secret);
  if (hash === undefined) throw new Error(NO_HASHING);
  return hash;
}

const problemsOf = (error: unknown) => (error instanceof ApiError && error.status === 400 ? error.faults : undefined);

/** Shows the first rows before anything is sent, so that a wrong column is noticed. Keys are not shown. */
function Preview({ table }: { table: ImportTable }): ReactNode {
  return (
    <KeyTable label="The first rows" heads={["Line", "Key", "Name", "Owner", "Credits", "Roles and permissions"]}>
      {table.rows.slice(0, PREVIEW_ROWS).map(({ line, secret, hash, key }) => (
        <tr key={line}>
          <td>{line}</td>
          <td>
            {secret === undefined ? <code>{hash?.slice(0, 8)}…</code> : `to be hashed, ${secret.length} characters`}
          </td>
          <td>{key.name ?? ""}</td>
          <td>{key.externalId ?? ""}</td>
          <td>{key.credits?.remaining ?? "unlimited"}</td>
          <td>{[...(key.roles ?? []), ...(key.permissions ?? [])].join(", ")}</td>
        </tr>
      ))}
    </KeyTable>
  );
}
