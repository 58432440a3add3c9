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
 * The editor of a query. It stands in a shadow root, where CodeMirror keeps its styles in adopted sheets: the policy of the page
 * refuses style elements. The Tab key moves on, as everywhere: it is bound to nothing.
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
 * What is typed over a selection is put in by the editor: a browser that does so itself carries the look of what was there over into a style attribute,
 * which the policy of the page refuses.
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

/** Marks a change that the page asked for: the page knows of it. */
const fromPage = Annotation.define<true>();

const setParseError = StateEffect.define<number | undefined>();
const FAULT = Decoration.mark({ class: "cm-fault" });

/** The place of the error, until the text there changes. */
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

/** A text that takes the place of what was typed: an example, an older query, one that came by an address. */
export interface GivenText {
  readonly text: string;
}

export interface QueryEditorProps {
  /** Another object each time a text is given. What is typed is the editor's, and only told. */
  readonly given: GivenText;
  readonly schema: QuerySchema | undefined;
  /** Offset of an error. */
  readonly problemAt: number | undefined;
  readonly describedBy: string;
  readonly onChange: (sql: string) => void;
  readonly onRun: () => void;
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
                run: () => {
                  latest.current.onRun();
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

  // biome-ignore lint/a11y/useSemanticElements: a set of fields it is not.
  return <div ref={host} className="sql-editor" role="group" aria-label="Editor" aria-describedby={describedBy} />;
}
