/** A page of a list that people look through, in the order of names. */
export interface NamedPage {
  readonly workspaceId: string;
  /** The first name of the page, in any case where the list ignores case; the empty text is before every name. */
  readonly cursor: string;
  /** Part of an id, a name or another text of a row; the empty text fits all. */
  readonly search: string;
  readonly rowsMax: number;
}
