import { useMutation } from "@tanstack/react-query";
import { useNavigate, useRouter } from "@tanstack/react-router";
import { Search } from "lucide-react";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { useApi } from "../api/api-context.ts";
import { useMay } from "../api/session.ts";
import { BareDialog } from "../components/bare-dialog.tsx";
import { Button } from "../components/button.tsx";
import { explainError } from "../components/explain-error.ts";
import { NO_HASHING } from "../components/hash-key.ts";
import {
  findBySecret,
  pagesAndActions,
  SEARCH_TEXT_MAX,
  type SearchGroup,
  type SearchRow,
  secretIn,
  withoutEmpty,
} from "./search-rows.ts";
import { useFoundObjects, useHighlight } from "./use-search.ts";
import "./search.css";

/**
 * Search over pages, actions and objects: a field with one list. A complete key is never searched for as text. A pasted key is removed from
 * the field immediately and hashed; a typed key is hashed on request.
 */
export function SearchDialog({ onClose }: { onClose: () => void }): ReactNode {
  const api = useApi();
  const may = useMay();
  const router = useRouter();
  const navigate = useNavigate();
  const id = useId();
  const [text, setText] = useState("");
  /** Whether the person said that the text is not a key, although it looks like one. */
  const [isNoKey, setNoKey] = useState(false);
  const byHash = useMutation({
    mutationFn: (secret: string) => findBySecret(api, secret),
    networkMode: "always",
    gcTime: 0,
  });
  const field = useRef<HTMLInputElement>(null);
  const isGoing = useRef(false);
  // Closes the dialog when another page opens below it, for example by the Back button.
  useEffect(
    () => router.subscribe("onBeforeNavigate", ({ pathChanged }) => pathChanged && onClose()),
    [router, onClose],
  );

  const find = (secret: string): void => {
    setText("");
    byHash.mutate(secret);
  };
  const searchAsText = (entered: string): void => {
    byHash.reset();
    setNoKey(true);
    setText(entered);
    field.current?.focus();
  };

  const typedSecret = isNoKey ? undefined : secretIn(text);
  const isText = byHash.isIdle && typedSecret === undefined;
  const searched = isText ? text.trim().slice(0, SEARCH_TEXT_MAX) : "";
  const objects = useFoundObjects(searched);
  let groups: readonly SearchGroup[] = [];
  if (isText) groups = [...pagesAndActions(may, searched), ...objects.groups];
  else if (typedSecret !== undefined) {
    const toHash = {
      id: "hash",
      label: "Find the key by its hash",
      open: () => find(typedSecret),
      stays: true,
    } as const;
    groups = [{ title: "Complete key", rows: [toHash] }];
  } else if (byHash.data !== undefined) groups = withoutEmpty([{ title: "Keys", rows: byHash.data }]);
  const rows = groups.flatMap((group) => group.rows);
  const [highlighted, setHighlighted] = useHighlight(rows);

  const edit = (entered: string): void => {
    const secret = secretIn(entered);
    byHash.reset();
    setHighlighted(undefined);
    if (secret === undefined) setNoKey(false);
    // An input of several characters at once is pasted or dropped, not typed.
    if (secret !== undefined && !isNoKey && entered.length > text.length + 1) find(secret);
    else setText(entered);
  };
  const choose = (row: SearchRow): void => {
    setHighlighted(undefined);
    isGoing.current = row.stays !== true;
    if (isGoing.current) onClose();
    row.open(navigate);
  };
  const move = (step: 1 | -1): void => {
    const at = rows.findIndex(({ id: rowId }) => rowId === highlighted?.id);
    setHighlighted(rows.at((at + step) % rows.length)?.id);
  };

  // A button rather than a result row, so that Enter after a paste never sends the key.
  const notKey = (entered: string): ReactNode => (
    <Button onClick={() => searchAsText(entered)}>This is not a key: search for the text</Button>
  );
  let foot: ReactNode;
  if (byHash.isError) foot = <Failed error={byHash.error} doing="Searching for the key" />;
  else if (byHash.isSuccess && byHash.data === undefined) foot = NO_HASHING;
  else if (byHash.isSuccess && byHash.data?.length === 0)
    foot = (
      <>
        <p>None of the keys that you may read has this secret. This page hashed it and did not send it.</p>
        {notKey(byHash.variables)}
      </>
    );
  else if (typedSecret !== undefined)
    foot = (
      <>
        <p>This looks like a complete key, which this page does not send.</p>
        {notKey(text)}
      </>
    );
  else if (objects.isLoading || byHash.isPending) foot = "Searching …";
  else if (objects.problem !== undefined) foot = <Failed {...objects.problem} />;
  else if (rows.length === 0)
    foot = (
      <p>
        Nothing found for “<bdi>{searched}</bdi>”.
      </p>
    );
  else if (text === "") foot = "Type a name or an id, or paste a key.";
  else foot = rows.length === 1 ? "1 result" : `${rows.length} results`;

  const optionId = (row: SearchRow): string => `${id}-${row.id.replaceAll(/[^\w-]/g, "-")}`;
  return (
    <BareDialog
      title="Search"
      className="search-dialog"
      onClose={onClose}
      // After a choice, focuses the page title, as after other navigations. The shell does this only if the path changes.
      focusAfter={() => !isGoing.current || document.querySelector<HTMLElement>("main h1")}
    >
      <div className="search-head">
        <Search size={16} aria-hidden />
        <input
          ref={field}
          type="text"
          role="combobox"
          className="search-input"
          aria-label="Search pages, actions and objects"
          aria-expanded={rows.length > 0}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={highlighted && optionId(highlighted)}
          placeholder="Page, action, name, id or key"
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          enterKeyHint="go"
          value={text}
          onChange={({ target }) => edit(target.value)}
          onKeyDown={(event) => {
            const { key, nativeEvent } = event;
            if (nativeEvent.isComposing || !["ArrowDown", "ArrowUp", "Enter"].includes(key)) return;
            event.preventDefault();
            if (key !== "Enter") move(key === "ArrowDown" ? 1 : -1);
            else if (highlighted !== undefined && !event.repeat) choose(highlighted);
          }}
        />
        <Button kind="quiet" onClick={onClose}>
          Close
        </Button>
      </div>
      <Results
        id={`${id}-list`}
        groups={groups}
        highlighted={highlighted}
        optionId={optionId}
        onHighlight={setHighlighted}
        onChoose={choose}
      />
      <div className="search-foot" role="status">
        {foot}
      </div>
    </BareDialog>
  );
}

function Failed({ error, doing }: { error: unknown; doing: string }): ReactNode {
  const { happened, todo } = explainError(error, doing);
  return (
    <span className="field-fault">
      {happened} {todo}
    </span>
  );
}

/** List of the results. The focus stays in the field, which handles the keys. */
function Results({
  id,
  groups,
  highlighted,
  optionId,
  onHighlight,
  onChoose,
}: {
  id: string;
  groups: readonly SearchGroup[];
  highlighted: SearchRow | undefined;
  optionId: (row: SearchRow) => string;
  onHighlight: (rowId: string) => void;
  onChoose: (row: SearchRow) => void;
}): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  const highlightedId = highlighted?.id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: results that arrive above the highlighted one move it.
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [highlightedId, groups.length]);
  return (
    <div
      ref={list}
      id={id}
      role="listbox"
      aria-label="Results"
      className="search-list"
      onMouseDown={(event) => event.preventDefault()}
    >
      {groups.map(({ title, rows }) => (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be in a list box.
        <div key={title} role="group" aria-label={title}>
          <div className="search-group" aria-hidden>
            {title}
          </div>
          {rows.map((row) => (
            // biome-ignore lint/a11y/useFocusableInteractive: the field refers to the highlighted option.
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys.
            <div
              key={row.id}
              id={optionId(row)}
              role="option"
              aria-selected={row.id === highlightedId}
              className="search-row"
              // Ignores the event that a row gets when it moves below a resting pointer.
              onPointerMove={({ movementX, movementY }) => {
                if (movementX !== 0 || movementY !== 0) onHighlight(row.id);
              }}
              onClick={() => onChoose(row)}
            >
              <bdi className="cut" title={row.label}>
                {row.label}
              </bdi>
              {row.note !== undefined && <bdi className="cut muted">{row.note}</bdi>}
            </div>
          ))}
        </div>
      ))}
    </div>
  );
}
