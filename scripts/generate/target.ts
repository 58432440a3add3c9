/** Generator of one or more files. It returns the contents of the files by their path from the project root. */
export interface Target {
  readonly name: string;
  readonly files: () => Promise<ReadonlyMap<string, string>>;
  /** Directory that contains only files of this target; any other file in it is stale. */
  readonly ownsFolder?: string;
  /** Whether git ignores the generated files. If so, a new checkout does not have them. */
  readonly isIgnored?: true;
}
