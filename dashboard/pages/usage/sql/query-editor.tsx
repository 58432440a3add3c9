import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLDialect, sql } from "@codemirror/lang-sql";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Annotation, EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { type ReactNode, useEffect, useRef } from "react";
import { KEYWORDS, offersAt, type QuerySchema } from "../../../usage/completion.ts";

/*
 * Query editor. It runs in a shadow root, where CodeMirror keeps its styles in adopted style sheets, because the page's
 * Content-Security-Policy forbids style elements. The Tab key moves the focus, as in other fields.
 */

const DIALECT = SQLDialect.define({
  keywords: KEYWORDS.join(" ").toLowerCase(),
  types: "string int64 int32 float64 date datetime bool",
  backslashEscapes: true,
  hashComments: true,
  identifierQuotes: '"`',
});

const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--back-raised)", fontSize: "var(--text-m)", maxHeight: "24rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", minHeight: "9rem" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--back-chosen)" },
  ".cm-gutters": { color: "var(--muted)", backgroundColor: "var(--back-quiet)", border: "none" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-tooltip": {
    color: "var(--text)",
    backgroundColor: "var(--back-raised)",
    border: "1px solid var(--line-strong)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { color: "var(--text)", backgroundColor: "var(--back-chosen)" },
  ".cm-completionDetail": { color: "var(--muted)" },
  ".cm-completionInfo": { maxWidth: "20rem", padding: "4px 8px" },
  ".cm-fault": { textDecoration: "underline wavy var(--bad) 1.5px", backgroundColor: "var(--bad-back)" },
});

const COLOURS = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.keyword, color: "var(--series-5)", fontWeight: "600" },
    { tag: tags.string, color: "var(--series-4)" },
    { tag: tags.number, color: "var(--series-6)" },
    { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
    { tag: tags.typeName, color: "var(--series-3)" },
  ]),
);

/**
 * The editor inserts text that is typed over a selection. If the browser inserted the text, it could copy the old formatting into a style
 * attribute, which the page's Content-Security-Policy forbids.
 */
const typeOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { inputType, data } = event;
    if (inputType !== "insertText" || data === null || view.state.selection.main.empty || view.composing) return false;
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

/** Marks changes that the page itself made, so that the editor does not report them to the page. */
const fromPage = Annotation.define<true>();

const setParseError = StateEffect.define<number | undefined>();
const FAULT = Decoration.mark({ class: "cm-fault" });

/** Marks the error's position until the text at this position changes. */
const fault = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (marked, { effects, docChanged, state }) => {
    for (const effect of effects) {
      if (!effect.is(setParseError)) continue;
      if (effect.value === undefined || state.doc.length === 0) return Decoration.none;
      const from = Math.min(effect.value, state.doc.length - 1);
      const word = state.wordAt(from);
      const to = word !== null && word.from === from ? word.to : from + 1;
      return Decoration.set([FAULT.range(from, to)]);
    }
    return docChanged ? Decoration.none : marked;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Text that replaces the editor's content: an example, an earlier query, or a query from the page URL. */
export interface GivenText {
  readonly text: string;
}

export interface QueryEditorProps {
  /** A new object replaces the editor's content. The same object leaves the typed text unchanged. */
  readonly given: GivenText;
  readonly schema: QuerySchema | undefined;
  /** Offset of the error in the text. */
  readonly problemAt: number | undefined;
  readonly describedBy: string;
  readonly onChange: (sql: string) => void;
  /** Called with the current text of the editor, which may be newer than the last rendered text. */
  readonly onRun: (sql: string) => void;
}

export function QueryEditor(props: QueryEditorProps): ReactNode {
  const { given, problemAt, describedBy } = props;
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: latest.current.given.text,
        extensions: [
          Prec.highest(
            keymap.of([
              {
                key: "Mod-Enter",
                run: ({ state }) => {
                  latest.current.onRun(state.doc.toString());
                  return true;
                },
              },
            ]),
          ),
          typeOver,
          lineNumbers(),
          history(),
          autocompletion({
            override: [
              ({ state, pos, explicit }) => {
                const { schema } = latest.current;
                const offers = schema && offersAt(state.doc.toString(), pos, schema, explicit);
                return offers === undefined
                  ? null
                  : { from: offers.from, options: [...offers.options], validFor: /^\w*$/ };
              },
            ],
          }),
          keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap]),
          sql({ dialect: DIALECT }),
          fault,
          THEME,
          COLOURS,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "Query", spellcheck: "false", autocapitalize: "off" }),
          placeholder("SELECT …"),
          EditorView.updateListener.of(({ docChanged, state, transactions }) => {
            if (docChanged && !transactions.every((one) => one.annotation(fromPage))) {
              latest.current.onChange(state.doc.toString());
            }
          }),
        ],
      }),
    });
    view.current = made;
    return () => {
      made.destroy();
      view.current = undefined;
    };
  }, []);

  useEffect(() => {
    const current = view.current;
    if (current === undefined || current.state.doc.toString() === given.text) return;
    const changes = { from: 0, to: current.state.doc.length, insert: given.text };
    current.dispatch({ changes, annotations: fromPage.of(true) });
  }, [given]);

  useEffect(() => {
    view.current?.dispatch({ effects: setParseError.of(problemAt) });
    if (problemAt !== undefined)
      view.current?.dispatch({ selection: { anchor: Math.min(problemAt, view.current.state.doc.length) } });
  }, [problemAt]);

  // biome-ignore lint/a11y/useSemanticElements: the editor is not a set of form fields.
  return <div ref={host} className="sql-editor" role="group" aria-label="Editor" aria-describedby={describedBy} />;
}
