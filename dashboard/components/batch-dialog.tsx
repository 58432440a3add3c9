import { type ReactNode, useState } from "react";
import type { Procedure } from "../../core/api/procedures.ts";
import { ApiError } from "../api/api-error.ts";
import { useReadAgain } from "../api/queries.ts";
import { type BatchState, runBatch, startOf } from "../api/run-batch.ts";
import { Ago } from "./ago.tsx";
import { BatchProgress, FailedRows } from "./batch-progress.tsx";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNote } from "./error-note.tsx";
import { FormDialog } from "./form-dialog.tsx";
import { Notice } from "./notice.tsx";
import { useDone } from "./toast.tsx";
import { useStop } from "./use-stop.ts";
import { countText } from "./uses.ts";

const NAMES_SHOWN = 5;

/** An item of a batch: a row with its name. */
export interface BatchItem {
  readonly id: string;
  readonly name: string;
  /** Reason why the batch skips the item. */
  readonly skipped?: string | undefined;
}

/**
 * Dialog for one action on many rows. It says which rows the action will change and which it will skip, then shows the progress. If rows
 * fail, the dialog lists them with the reasons and offers another attempt. While the action runs, the dialog asks for confirmation before
 * it closes.
 */
export function BatchDialog<T extends BatchItem>({
  verb,
  past,
  one,
  kind = "danger",
  items,
  act,
  refreshes,
  fault,
  onClose,
  children,
}: {
  /** Verb of the action and its past participle, such as "Disable" and "disabled". */
  verb: string;
  past: string;
  /** Noun for one row, such as "key". */
  one: string;
  kind?: "main" | "danger";
  /** Rows of the batch. The list must stay the same while the dialog is open. */
  items: readonly T[];
  /** Changes one row; called again for a row whose response was lost. */
  act: (item: T) => Promise<unknown>;
  /** Procedures whose cached responses become stale. */
  refreshes: readonly Procedure[];
  /** Reason why the batch cannot start yet, such as a missing field. */
  fault?: string | undefined;
  onClose: () => void;
  /** Explanation of the consequences, and input fields. */
  children: ReactNode;
}): ReactNode {
  const readAgain = useReadAgain();
  const done = useDone(onClose);
  const { begin, stop } = useStop();
  const [state, setState] = useState<BatchState<T>>();
  const [phase, setPhase] = useState<"asked" | "running" | "stopping" | "ended">("asked");
  const [error, setError] = useState<unknown>(null);
  const todo = items.filter(({ skipped }) => skipped === undefined);
  const skipped = items.filter((item) => item.skipped !== undefined);
  const title = `${verb} ${countText(todo.length, one)}`;
  const skippedText = skipped.length === 0 ? "" : `, ${skipped.length.toLocaleString("en")} skipped`;

  const run = async (from: BatchState<T>): Promise<void> => {
    const signal = begin();
    let last = from;
    setState(from);
    setPhase("running");
    setError(null);
    try {
      await runBatch(from, {
        act,
        signal,
        report: (next) => {
          last = next;
          setState(next);
        },
      });
      if (last.left.length + last.failed.length === 0) done(`${countText(last.done, one)} ${past}${skippedText}.`);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setPhase("ended");
      readAgain(refreshes);
    }
  };

  if (state === undefined || phase === "asked") {
    return (
      <FormDialog
        title={title}
        action={title}
        kind={kind}
        fault={todo.length === 0 ? `None of the selected ${one}s can be ${past}.` : fault}
        isBusy={false}
        error={null}
        doing={title}
        onSubmit={() => void run(startOf(todo))}
        onClose={onClose}
      >
        {children}
        <NamesOf items={todo} />
        {skipped.length > 0 && <Skipped items={skipped} one={one} />}
      </FormDialog>
    );
  }
  const { failed, left, waitsUntilMs } = state;
  const isRunning = phase !== "ended";
  /** The same call would fail for the other rows too, so the person must change the input. */
  const isInputWrong = state.done === 0 && error instanceof ApiError && [400, 404].includes(error.status);
  const again = left.length > 0 ? state : { ...state, failed: [], left: failed.map(({ item }) => item) };
  return (
    <Dialog
      title={title}
      isOpen
      keeps={isRunning ? "batch" : undefined}
      cancel={phase === "running" ? "Stop" : phase === "stopping" ? "Stopping …" : "Close"}
      onClose={() => {
        if (!isRunning) return onClose();
        setPhase("stopping");
        stop();
      }}
      actions={
        !isRunning && (
          <Button kind="main" onClick={() => (isInputWrong ? setPhase("asked") : void run(again))}>
            {isInputWrong
              ? "Back"
              : left.length > 0
                ? `Continue with ${countText(left.length, one)}`
                : `Retry ${countText(failed.length, one)}`}
          </Button>
        )
      }
    >
      <BatchProgress
        label={`Processed ${one}s`}
        max={todo.length}
        value={todo.length - left.length}
        isRunning={isRunning && waitsUntilMs === undefined}
      >
        {(todo.length - left.length).toLocaleString("en")} of {countText(todo.length, one)}:{" "}
        {state.done.toLocaleString("en")} {past}, {failed.length.toLocaleString("en")} failed{skippedText}.
        {!isRunning && left.length > 0 && ` Stopped: ${countText(left.length, one)} did not change.`}
        {waitsUntilMs !== undefined && (
          <>
            {" "}
            Waiting for the server; continues <Ago atMs={waitsUntilMs} />.
          </>
        )}
      </BatchProgress>
      {!isRunning && (
        <FailedRows
          title={`${countText(failed.length, one)} could not be ${past}:`}
          rows={failed.map(({ item: { id, name }, problem }) => ({ id, name, problem }))}
          columns={["id", "name", "problem"]}
          file={`${one}s-not-${past}.csv`}
          textOf={({ id, name, problem }) => (name === id ? `${id}: ${problem}` : `${name} (${id}): ${problem}`)}
        />
      )}
      {error !== null &&
        (error instanceof ApiError ? (
          <ErrorNote error={error} doing={`Changing the ${one}s`} />
        ) : (
          <Notice kind="bad">{`${title} failed because of an error in this page. Reload it, then try again.`}</Notice>
        ))}
    </Dialog>
  );
}

/** Shows the names of the first rows, so that the person notices a wrong selection. */
function NamesOf({ items }: { items: readonly BatchItem[] }): ReactNode {
  if (items.length === 0) return null;
  const more = items.length - NAMES_SHOWN;
  return (
    <ul className="dialog-names">
      {items.slice(0, NAMES_SHOWN).map(({ id, name }) => (
        <li key={id} className="cut" title={name}>
          {name}
        </li>
      ))}
      {more > 0 && <li className="muted">and {more.toLocaleString("en")} more</li>}
    </ul>
  );
}

function Skipped({ items, one }: { items: readonly BatchItem[]; one: string }): ReactNode {
  const more = items.length - NAMES_SHOWN;
  return (
    <Notice kind="warn">
      <p>
        <strong>Skips {countText(items.length, one)}:</strong>
      </p>
      <ul>
        {items.slice(0, NAMES_SHOWN).map(({ id, name, skipped }) => (
          <li key={id}>
            {name}: {skipped}
          </li>
        ))}
        {more > 0 && <li>and {more.toLocaleString("en")} more</li>}
      </ul>
    </Notice>
  );
}
