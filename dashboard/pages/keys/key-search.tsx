import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { useApi } from "../../api/api-context.ts";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { hashKey, NO_HASHING } from "../../components/hash-key.ts";
import { Notice } from "../../components/notice.tsx";
import { recognize } from "../../components/recognize.ts";

const SETTLED_MS = 250;

/** Result of the search for a pasted key. */
type Pasted =
  | { readonly kind: "searching" | "noHashing" }
  /** `text` is the input, which the person can search for if it is not a key. It is only in this page's memory. */
  | { readonly kind: "unfound"; readonly text: string }
  | { readonly kind: "failed"; readonly error: unknown };

/**
 * Field for a search text or a complete key. A key is detected and hashed in the page and never leaves it. The field is cleared before
 * anything else happens.
 */
export function KeySearch({
  label,
  hint,
  value,
  isSecret,
  onText,
  onKeyId,
}: {
  label: string;
  hint: string;
  value: string;
  /** Whether to treat the input as a complete key even if it does not look like one. */
  isSecret: boolean;
  onText: (text: string) => void;
  onKeyId: (keyId: string) => void;
}): ReactNode {
  const api = useApi();
  const id = useId();
  const [text, setText] = useState(value);
  const [pasted, setPasted] = useState<Pasted>();
  const latest = useRef(onText);
  latest.current = onText;
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (isSecret || text.trim() === value) return;
    const timer = setTimeout(() => latest.current(text.trim()), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [text, value, isSecret]);

  const find = async (secret: string): Promise<void> => {
    setText("");
    setPasted({ kind: "searching" });
    try {
      const hash = await hashKey(secret);
      if (hash === undefined) return setPasted({ kind: "noHashing" });
      const [found] = (await api.call("admin.searchKeys", { hash, limit: 1 })).data;
      if (found === undefined) return setPasted({ kind: "unfound", text: secret });
      setPasted(undefined);
      onKeyId(found.keyId);
    } catch (error) {
      setPasted({ kind: "failed", error });
    }
  };
  const typed = (entered: string): void => {
    const what = recognize(entered);
    if (!isSecret && what.kind === "secret") void find(what.secret);
    else if (!isSecret && what.kind === "keyId") onKeyId(what.keyId);
    else {
      setText(entered);
      setPasted(undefined);
    }
  };
  return (
    <div className="field key-search">
      <label htmlFor={id}>{label}</label>
      <form
        className="field-row"
        onSubmit={(event) => {
          event.preventDefault();
          if (isSecret && text !== "") void find(text.trim());
        }}
      >
        <input
          id={id}
          type={isSecret ? "password" : "search"}
          className="input"
          value={text}
          autoComplete="off"
          spellCheck={false}
          aria-describedby={`${id}-hint`}
          onChange={({ target }) => typed(target.value)}
        />
        {isSecret && <Button type="submit">Find</Button>}
      </form>
      <span id={`${id}-hint`} className="field-hint">
        {hint}
      </span>
      {pasted?.kind === "searching" && <span role="status">Searching for the key by its hash …</span>}
      {pasted?.kind === "unfound" && (
        <Notice
          kind="warn"
          actions={
            !isSecret && (
              <Button
                onClick={() => {
                  setPasted(undefined);
                  onText(pasted.text);
                }}
              >
                This is not a key: search for the text
              </Button>
            )
          }
        >
          None of the keys that you may read has this secret. This page hashed it and did not send it.
        </Notice>
      )}
      {pasted?.kind === "noHashing" && <Notice kind="warn">{NO_HASHING}</Notice>}
      {pasted?.kind === "failed" && <ErrorNote error={pasted.error} doing="Searching for the key" />}
    </div>
  );
}
