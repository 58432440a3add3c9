/*
 * Finds the citations in a text: sections of the API references (`api-v2.md section 9.1`), RFCs, and citations in other forms,
 * which a reader of the repository could not follow.
 */

export interface Citation {
  /** `api-v2.md`; undefined for a citation that names no document of the repository and no RFC. */
  readonly document: string | undefined;
  /** `9.1`; empty where a text refers to a document without a section. */
  readonly section: string;
  /** As written in the text. */
  readonly text: string;
}

const SECTIONS = /\bsections? (\d+(?:\.\d+)*(?:(?:, and |, | and | or | to )\d+(?:\.\d+)*)*)/gi;
/** As a name, in backquotes, or as a link. */
const DOCUMENT = /(api-v\d+\.md)`?(?:\]\([^()]*\))?,? $/i;
const RFC = /\bRFC \d+,? $/;
/** Forms that name no section, or no document that is in the repository. */
const OTHER_FORMS = [
  /\bapi\/v\d+ (?:section )?\d/gi,
  /(?<!RFC \d+) \(\d{1,2}\.\d{1,2}\)/g,
  /\bthe design\b/gi,
  /\bof the reference\b/gi,
];
const DOCUMENT_NAME_LENGTH = 100;

/** Every citation of a text but those of RFCs. Comments that go on in the next line are read as one line. */
export function findCitations(source: string): Citation[] {
  const text = source.replace(/\n[ \t]*(?:\*(?!\/)|\/\/|--|#)?[ \t]*/g, " ");
  const citations: Citation[] = [];
  for (const match of text.matchAll(SECTIONS)) {
    const before = text.slice(Math.max(0, match.index - DOCUMENT_NAME_LENGTH), match.index);
    if (RFC.test(before)) continue;
    const document = DOCUMENT.exec(before)?.[1];
    for (const [section] of (match[1] ?? "").matchAll(/\d+(?:\.\d+)*/g)) {
      citations.push({ document, section, text: `${document ?? ""} ${match[0]}`.trim() });
    }
  }
  for (const form of OTHER_FORMS) {
    for (const [found] of text.matchAll(form)) citations.push({ document: undefined, section: "", text: found.trim() });
  }
  return citations;
}
