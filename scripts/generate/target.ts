/** Generated files: content by path from the project root. */
export interface Target {
  readonly name: string;
  readonly files: () => Promise<ReadonlyMap<string, string>>;
  /** Directory with only generated files: a file that the target does not return is stale. */
  readonly ownsFolder?: string;
  /** Whether git ignores the files, so that a checkout does not have them. */
  readonly isIgnored?: true;
}
