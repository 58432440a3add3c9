import { type ReactNode, useState } from "react";
import { useApi } from "../../api/api-context.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { csvOf, downloadCsv } from "../../components/download.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { useStop } from "../../components/use-stop.ts";
import { EXPORT_COLUMNS, exportRow } from "./key-csv.ts";

/** Maximum number of exported keys, which limits the memory of the browser: 100,000 keys need about 30 MB. */
const KEYS_MAX = 100_000;

type Progress =
  | { readonly kind: "running"; readonly keys: number }
  | { readonly kind: "done"; readonly keys: number; readonly hasMore: boolean }
  | { readonly kind: "cancelled" }
  | { readonly kind: "failed"; readonly error: unknown };

/** Reads the keys of an API page by page and offers them as a file. The file contains no secrets. */
export function ExportKeys({
  apiId,
  apiName,
  onClose,
}: {
  apiId: string;
  apiName: string;
  onClose: () => void;
}): ReactNode {
  const api = useApi();
  const [progress, setProgress] = useState<Progress>();
  const { begin, stop } = useStop();

  const start = async (): Promise<void> => {
    const signal = begin();
    const parts: string[] = [];
    let keys = 0;
    let cursor: string | undefined;
    setProgress({ kind: "running", keys });
    try {
      do {
        const body = { apiId, limit: 100, ...(cursor === undefined ? {} : { cursor }) };
        const { data, next } = await api.call("apis.listKeys", body, { signal });
        const csv = csvOf(EXPORT_COLUMNS, data.map(exportRow));
        // Keeps only the first page's header line.
        parts.push(cursor === undefined ? csv : csv.slice(csv.indexOf("\n") + 1));
        keys += data.length;
        cursor = next;
        setProgress({ kind: "running", keys });
      } while (cursor !== undefined && keys < KEYS_MAX);
      downloadCsv(`keys-${apiId}.csv`, parts.join(""));
      setProgress({ kind: "done", keys, hasMore: cursor !== undefined });
    } catch (error) {
      setProgress(signal.aborted ? { kind: "cancelled" } : { kind: "failed", error });
    }
  };
  const isRunning = progress?.kind === "running";
  return (
    <Dialog
      title={`Export the keys of ${apiName}`}
      isOpen
      onClose={onClose}
      actions={
        isRunning ? (
          <Button onClick={stop}>Stop</Button>
        ) : (
          <Button kind="main" onClick={() => void start()}>
            Export
          </Button>
        )
      }
    >
      <p>
        All keys of the API that are not deleted, up to {KEYS_MAX.toLocaleString("en")}: names, owners, limits, credits,
        roles, permissions and meta. The file does not contain the keys themselves.
      </p>
      <p role="status">
        {progress?.kind === "running" && `${progress.keys.toLocaleString("en")} loaded …`}
        {progress?.kind === "done" &&
          `The file has ${progress.keys.toLocaleString("en")} keys.${progress.hasMore ? " The API has more keys, which are not in the file." : ""}`}
        {progress?.kind === "cancelled" && "Stopped; no file was created."}
      </p>
      {progress?.kind === "failed" && (
        <ErrorNote error={progress.error} doing="Reading the keys" again={() => void start()} />
      )}
    </Dialog>
  );
}
