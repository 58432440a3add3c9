import type { Recipe } from "./recipe.ts";

/* An API remembers when it was archived. */

const FILE = "api-server/db/migrations/9999-archived-apis.sql";
const RULES = "api-server/db/migration-rules.test.ts";
const COLUMN = "alter table apis add column archived_at bigint;\n";

export const addAMigration: Recipe = {
  heading: "Add a migration",
  parts: [
    { step: 1, file: FILE, text: COLUMN },
    {
      step: 2,
      file: "CHANGELOG.md",
      after: "## 0.1.0: first release\n\n",
      text: "- The database gets the migration 9999.\n",
    },
  ],
  notTaken: {},
  lists: [RULES, "api-server/db/migrate.test.ts"],
  about: { words: [], files: [] },
  omissions: [
    {
      what: "making an index beside the traffic",
      leaveOut: (copy) => copy.replace(FILE, COLUMN, `${COLUMN}create index apis_archived on apis (archived_at);\n`),
      noticedBy: { file: RULES, says: /9999-archived-apis\.sql: makes index apis_archived on apis/ },
    },
  ],
};
