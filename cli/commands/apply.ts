import { withApi } from "../api/connection.ts";
import { defineCommand, type Io, type OptionValues } from "../command.ts";
import {
  applySet,
  CHANGES_SHAPE,
  type Change,
  type Doomed,
  deleteAll,
  doomedOf,
  exitCodeOf,
  findPruned,
  firstPartOf,
  mayDelete,
  printChanges,
  readSet,
  requireWorkspace,
} from "../manifest-changes.ts";
import { connection, json, manifestPaths, strict } from "../options.ts";

/** Options of commands that apply or delete a set of manifests. */
export const setOptions = {
  file: manifestPaths,
  name: {
    type: "string",
    placeholder: "NAME",
    help: "name of the set; its manager names start with cli.NAME/",
    default: "default",
  },
  workspace: {
    type: "string",
    placeholder: "WORKSPACE",
    help: "workspace id or name to which the root key must belong",
  },
  strict,
} as const;
const prune = {
  type: "boolean",
  help: "delete stored objects of this set that are not in the files",
} as const;
const yes = { type: "boolean", help: "without confirmation, delete objects that keys depend on" } as const;
const dryRun = { type: "boolean", help: "show the changes without making them; exit code 2 if there are any" } as const;

type SetOptions = OptionValues<typeof setOptions & typeof connection> & {
  readonly json: boolean;
  readonly prune: boolean;
  readonly yes: boolean;
  readonly dryRun: boolean;
};

async function apply(options: SetOptions, io: Io): Promise<number> {
  const first = firstPartOf(options.name);
  const set = await readSet(options.file, options, io);
  if (set === undefined) return 1;
  const { dryRun } = options;
  return await withApi(options, io, async (api) => {
    await requireWorkspace(api, options.workspace);
    const run = { api, first, dryRun };
    const pruned: readonly Doomed[] = options.prune ? await findPruned(set.objects, run) : [];
    if (!dryRun && !(await mayDelete(pruned, options.yes, io))) return 1;
    const changes = async function* (): AsyncGenerator<Change> {
      yield* applySet(set.objects, run);
      yield* deleteAll(pruned, run);
    };
    return exitCodeOf(await printChanges(changes(), options, io), dryRun);
  });
}

export const applyCommand = defineCommand({
  name: "apply",
  description:
    "Stores each object in its own transaction; skips ApiKeys. Requires the permissions of managed.applyObject, and with --prune of managed.deleteObject. Exit code 1 if an object failed, which does not stop the others; 2 if a dry run found differences.",
  options: { ...setOptions, prune, "dry-run": dryRun, yes, ...connection, json },
  response: CHANGES_SHAPE,
  run: (options, io) => apply({ ...options, dryRun: options["dry-run"] }, io),
});

export const diff = defineCommand({
  name: "diff",
  description: "Like `postern apply --dry-run`. Requires only permissions to read.",
  options: { ...setOptions, prune, ...connection, json },
  response: CHANGES_SHAPE,
  run: (options, io) => apply({ ...options, dryRun: true, yes: false }, io),
});

export const deleteCommand = defineCommand({
  name: "delete",
  description:
    "Deletes or releases stored objects as spec.deletionPolicy says. Requires the permissions of managed.deleteObject. Exit codes as for `postern apply`.",
  options: { ...setOptions, "dry-run": dryRun, yes, ...connection, json },
  response: CHANGES_SHAPE,
  run: async (options, io) => {
    const first = firstPartOf(options.name);
    const set = await readSet(options.file, options, io);
    if (set === undefined) return 1;
    const doomed = doomedOf(set.objects, first);
    const dryRun = options["dry-run"];
    return await withApi(options, io, async (api) => {
      await requireWorkspace(api, options.workspace);
      if (!dryRun && !(await mayDelete(doomed, options.yes, io))) return 1;
      const changes = await printChanges(deleteAll(doomed, { api, dryRun }), { json: options.json, dryRun }, io);
      return exitCodeOf(changes, dryRun);
    });
  },
});
