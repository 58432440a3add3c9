/** A page of a list for the dashboard, sorted by name. */
export interface NamedPage {
  readonly workspaceId: string;
  /** First name of the page, in any case if the list ignores case; the empty string precedes every name. */
  readonly cursor: string;
  /** Substring of an id, a name or another text of a row; the empty string matches all. */
  readonly search: string;
  readonly rowsMax: number;
}
