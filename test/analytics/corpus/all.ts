import { AGGREGATES } from "./aggregates.ts";
import { ARRAYS } from "./arrays.ts";
import { CLAUSES } from "./clauses.ts";
import { FUNCTIONS } from "./functions.ts";
import { NAMES } from "./names.ts";
import { NOTHING } from "./nothing.ts";
import { NUMBERS } from "./numbers.ts";
import type { CorpusQuery } from "./query.ts";
import { TEXT } from "./text.ts";
import { TIME } from "./time.ts";

import { ZONES } from "./zones.ts";

export const CORPUS: readonly CorpusQuery[] = [
  ...NUMBERS,
  ...NOTHING,
  ...TIME,
  ...ZONES,
  ...TEXT,
  ...ARRAYS,
  ...AGGREGATES,
  ...FUNCTIONS,
  ...NAMES,
  ...CLAUSES,
];
