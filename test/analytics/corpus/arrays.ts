import { one, themed } from "./query.ts";

export const ARRAYS = [
  ...themed("arrays", [
    one("[1, 2, 3] AS a, ['a', 'b'] AS b, [] AS c, [1.5, 2] AS d, length([1, 2]) AS e"),
    one("has([1, 2], 2) AS a, has([1, 2], 3) AS b, has([], 1) AS c"),
    { query: one("has(['a', NULL], NULL) AS a"), refused: "arrays with null", refusedBy: "postgres" },
    { query: one("has(tags, tags) AS a"), refused: "an array of texts has no arrays in it" },
    one(
      "hasAny([1, 2], [2, 3]) AS a, hasAny([1, 2], []) AS b, hasAll([1, 2], []) AS c, hasAll([1, 2], [1, 2, 3]) AS d, hasAll([1, 2, 1], [1]) AS e",
    ),
    one("[1, 2, 3][1] AS a, [1, 2, 3][-1] AS b, [1, 2, 3][9] AS c, ['a'][2] AS d, [1, 2, 3][-9] AS e"),
    "SELECT count() FROM key_verifications_v1 WHERE has(tags, 'it\\'s')",
    "SELECT count() FROM key_verifications_v1 WHERE has(tags, '')",
    "SELECT count() FROM key_verifications_v1 WHERE has(tags, 'NULL')",
    "SELECT count() FROM key_verifications_v1 WHERE hasAny(tags, ['path=/v1/a', 'path=/v1/b'])",
    "SELECT count() FROM key_verifications_v1 WHERE hasAll(tags, ['ü', '日本'])",
    "SELECT count() FROM key_verifications_v1 WHERE NOT has(tags, 'ü') AND length(tags) > 0",
    "SELECT length(tags) AS n, count() FROM key_verifications_v1 GROUP BY n ORDER BY n",
    "SELECT tags[1] AS first, count() AS n FROM key_verifications_v1 GROUP BY first ORDER BY first",
    "SELECT tags[-1] AS last, count() AS n FROM key_verifications_v1 GROUP BY last ORDER BY n DESC, last LIMIT 4",
    "SELECT tags, sum(count) AS n FROM key_verifications_per_month_v1 GROUP BY tags ORDER BY n DESC, tags LIMIT 15",
    "SELECT tags FROM key_verifications_v1 GROUP BY tags ORDER BY tags LIMIT 30",
    "SELECT tags FROM key_verifications_v1 GROUP BY tags ORDER BY tags DESC LIMIT 30",
    "SELECT count() FROM key_verifications_v1 WHERE tags = []",
    "SELECT count() FROM key_verifications_v1 WHERE tags = ['ü']",
    "SELECT max(tags) AS a, min(tags) AS b FROM key_verifications_v1",
    "SELECT arrayFilter(x -> startsWith(x, 'path='), tags) AS paths, count() AS n FROM key_verifications_v1 GROUP BY paths ORDER BY n DESC, paths LIMIT 10",
    "SELECT arrayFilter(x -> x != '' AND length(x) < 3, tags) AS short, count() AS n FROM key_verifications_v1 GROUP BY short ORDER BY n DESC, short LIMIT 10",
    "SELECT sum(length(arrayFilter(t -> t = outcome OR t = 'b', tags))) AS a FROM key_verifications_v1",
    one(
      "arrayFilter(x -> x > 1, [1, 2, 3]) AS a, arrayFilter(x -> 0, ['a']) AS b, arrayFilter(x -> x % 2, [1, 2, 3, 4, 5]) AS c",
    ),
    "SELECT length(arrayFilter(x -> x LIKE '%=%', tags)) AS n, count() FROM key_verifications_v1 GROUP BY n ORDER BY n",
  ]),
  ...themed("arrayJoin", [
    "SELECT arrayJoin(tags) AS tag, count() AS n FROM key_verifications_v1 GROUP BY tag ORDER BY n DESC, tag",
    "SELECT arrayJoin(tags) AS tag, sum(spent_credits) AS s FROM key_verifications_v1 WHERE outcome = 'VALID' GROUP BY tag ORDER BY tag",
    "SELECT arrayJoin(tags) AS tag, sum(count) AS n FROM key_verifications_per_day_v1 GROUP BY tag ORDER BY tag",
    "SELECT count() FROM (SELECT arrayJoin(tags) AS tag FROM key_verifications_v1)",
    "SELECT arrayJoin(tags) AS a, arrayJoin(tags) AS b, count() AS n FROM key_verifications_v1 GROUP BY a, b ORDER BY a, b LIMIT 40",
    one("arrayJoin([1, 2, 3]) AS a").replace(
      " LIMIT 1",
      " WHERE key_id = 'key_0' ORDER BY time, tags, outcome, source, app_id, a LIMIT 7",
    ),
    { query: "SELECT arrayJoin([]) AS a FROM key_verifications_v1", fails: true },
    "SELECT tag, uniqExact(key_id) AS keys FROM (SELECT key_id, arrayJoin(tags) AS tag FROM key_verifications_v1) GROUP BY tag ORDER BY tag",
    "SELECT arrayJoin(arrayFilter(x -> x LIKE 'path=%', tags)) AS path, count() AS n FROM key_verifications_v1 GROUP BY path ORDER BY path",
    "SELECT substring(arrayJoin(tags), 1, 2) AS t, count() AS n FROM key_verifications_v1 WHERE NOT has(tags, '日本') GROUP BY t ORDER BY t",
    {
      query:
        "SELECT substring(arrayJoin(tags), 1, 2) AS t, count() AS n FROM key_verifications_v1 GROUP BY t ORDER BY t",
      refused: "a cut within a character leaves no text",
      refusedBy: "postgres",
    },
    "SELECT count() FROM key_verifications_v1 WHERE arrayJoin(tags) = 'ü'",
    "SELECT arrayJoin(tags) AS tag, outcome, count() AS n FROM key_verifications_v1 GROUP BY tag, outcome HAVING n > 200 ORDER BY n DESC, tag, outcome",
  ]),
  ...themed("aggregates into arrays", [
    "SELECT groupArray(n) AS a FROM (SELECT count() AS n FROM key_verifications_v1 GROUP BY outcome ORDER BY outcome)",
    "SELECT groupArray(outcome) AS a FROM (SELECT outcome FROM key_verifications_v1 GROUP BY outcome ORDER BY outcome DESC)",
    { query: "SELECT groupUniqArray(outcome) AS a FROM key_verifications_v1", arraysAsSets: true },
    {
      query:
        "SELECT key_space_id, groupUniqArray(source) AS a FROM key_verifications_v1 GROUP BY key_space_id ORDER BY key_space_id",
      arraysAsSets: true,
    },
    {
      query: "SELECT groupUniqArray(spent_credits) AS a FROM key_verifications_v1 WHERE spent_credits > 900",
      arraysAsSets: true,
    },
    { query: "SELECT groupUniqArray(arrayJoin(tags)) AS a FROM key_verifications_v1", arraysAsSets: true },
    "SELECT length(groupArray(request_id)) AS a, length(groupUniqArray(key_id)) AS b FROM key_verifications_v1",
    "SELECT has(groupArray(outcome), 'VALID') AS a, groupArray(outcome)[1] AS b FROM key_verifications_v1 WHERE outcome = 'EXPIRED'",
    "SELECT groupArray(x) AS a FROM (SELECT spent_credits / 2 AS x FROM key_verifications_v1 WHERE spent_credits < 6 GROUP BY spent_credits ORDER BY x)",
  ]),
];
