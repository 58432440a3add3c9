import { one, themed } from "./query.ts";

export const TEXT = [
  ...themed("text", [
    one("lower('ÄBC') AS a, upper('äbc') AS b, lower('ABCß') AS c"),
    one("length('abc') AS a, length('ü') AS b, length('') AS c, length('名前🎉') AS d"),
    one(
      "substring('hello', 2, 3) AS a, substring('hello', 2) AS b, substring('hello', -3) AS c, substring('hello', -3, 2) AS d",
    ),
    one(
      "substring('hello', 10) AS a, substring('hello', 1, 0) AS b, substring('hello', 4, 100) AS c, substring('hello', 1, -1) AS d",
    ),
    one("concat('a', 'b') AS a, concat('a', 1, 'b') AS b, 'a' || 'b' || 'c' AS c, concat('a') AS d"),
    one("trim('  a b  ') AS a, concat('[', trim('\\t a \\n '), ']') AS b, trim('') AS c"),
    { query: one("trim(BOTH 'x' FROM 'xxaxx') AS a"), refused: "trim takes one text" },
    one(
      "startsWith('hello', 'he') AS a, startsWith('hello', '') AS b, endsWith('hello', 'lo') AS c, endsWith('hello', 'x') AS d",
    ),
    "SELECT external_id, length(external_id) AS n, lower(external_id) AS l, upper(external_id) AS u FROM key_verifications_v1 GROUP BY external_id ORDER BY external_id",
    "SELECT external_id, trim(external_id) AS t, substring(external_id, 1, 4) AS s, substring(external_id, -2) AS e FROM key_verifications_v1 WHERE external_id NOT LIKE '%名%' GROUP BY external_id ORDER BY external_id",
    "SELECT external_id FROM key_verifications_v1 GROUP BY external_id ORDER BY external_id DESC",
    "SELECT min(external_id) AS a, max(external_id) AS b, max(key_id) AS c FROM key_verifications_v1 WHERE external_id != ''",
    "SELECT count() FROM key_verifications_v1 WHERE external_id > 'a'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id BETWEEN 'A' AND 'Z'",
    "SELECT 'a' < 'B' AS a, 'é' > 'z' AS b, 'a' < 'ab' AS c, '' < ' ' AS d FROM key_verifications_per_month_v1 LIMIT 1",
    "SELECT concat(outcome, ':', source) AS k, count() AS n FROM key_verifications_v1 GROUP BY k ORDER BY k",
    "SELECT concat(key_id, '/', toString(spent_credits)) AS k FROM key_verifications_v1 ORDER BY k LIMIT 5",
    "SELECT toString(spent_credits) AS s, count() FROM key_verifications_v1 WHERE spent_credits < 12 GROUP BY s ORDER BY s",
    one(
      "toString(1.0) AS a, toString(1e20) AS b, toString(0.1) AS c, toString(1 = 1) AS d, toString(-5) AS e, toString(1 / 3) AS f",
    ),
    one(
      "toString(1e21) AS a, toString(1e-7) AS b, toString(123456789012345680.0) AS c, toString(true) AS d, toString('x') AS e",
    ),
    one("toString(NULL) AS a"),
    { query: one("toString([1, 2]) AS a"), refused: "toString of arrays", refusedBy: "postgres" },
  ]),
  ...themed("strings and escapes", [
    one("'it''s' AS a, 'it\\'s' AS b, 'a\\\\b' AS c, 'tab\\there' AS d, 'line\\nbreak' AS e, '\\x41' AS f"),
    one("'' AS a, ' ' AS b, '日本🎉' AS c, '\"' AS d, '`' AS e, '%_' AS f"),
    "SELECT count() FROM key_verifications_v1 WHERE external_id = 'o\\'brien'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id = 'o''brien'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id = 'back\\\\slash'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id = 'tab\\there'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id = 'say \"hi\"'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id = 'Ünïcode 名前 🎉'",
    'SELECT count() AS "a name", min(key_id) AS `back tick` FROM key_verifications_v1',
    'SELECT "key_id", `outcome`, count() AS n FROM key_verifications_v1 GROUP BY `key_id`, "outcome" ORDER BY "key_id", outcome LIMIT 3',
    "SELECT count() /* a comment */ FROM key_verifications_v1 -- and one more\nWHERE outcome = 'VALID' # and this",
    "SELECT count() FROM key_verifications_v1 WHERE outcome = '-- no comment' OR outcome = '/* nor this */'",
    "select COUNT(*) as N from key_verifications_v1 where OUTCOME_ = 'VALID'".replace("OUTCOME_", "outcome"),
    "SELECT count() FROM key_verifications_v1;",
    "  \n\tSELECT\n count()\n FROM\n key_verifications_v1\n",
    { query: "SELECT count() FROM key_verifications_v1 WHERE outcome = E'VALID'", fails: true },
    { query: "SELECT count() FROM key_verifications_v1 WHERE outcome = 'VALID", fails: true },
    { query: "SELECT count() FROM key_verifications_v1; SELECT 1", refused: "several statements" },
  ]),
  ...themed("like", [
    "SELECT count() FROM key_verifications_v1 WHERE key_id LIKE 'key_1%'",
    "SELECT count() FROM key_verifications_v1 WHERE key_id LIKE 'key\\_1%'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id LIKE '%\\%'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id LIKE '100\\\\%'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id LIKE 'under\\\\_score'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id LIKE 'back\\\\\\\\slash'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id LIKE '%名%'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id LIKE 'user__'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id NOT LIKE '%e%'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id ILIKE 'USER%'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id NOT ILIKE '%USER%'",
    "SELECT count() FROM key_verifications_v1 WHERE external_id LIKE ''",
    one("'ü' LIKE '_' AS a, 'a\\nb' LIKE 'a%b' AS b, 'abc' LIKE 'ABC' AS c, 'a' LIKE 'a' AS d"),
    { query: "SELECT count() FROM key_verifications_v1 WHERE external_id LIKE 'a\\\\'", fails: true },
  ]),
  ...themed("json", [
    one(
      "JSONExtractString('{\"a\":\"x\"}', 'a') AS a, JSONExtractString('{\"a\":5}', 'a') AS b, JSONExtractString('{\"a\":{\"b\":\"c\"}}', 'a', 'b') AS c",
    ),
    one(
      "JSONExtractString('{\"a\":\"x\"}', 'none') AS a, JSONExtractString('no json', 'a') AS b, JSONExtractString('', 'a') AS c",
    ),
    one(
      "JSONExtractString('{\"a\":null}', 'a') AS a, JSONExtractString('{\"a\":true}', 'a') AS b, JSONExtractString('{\"a\":[1, 2]}', 'a') AS c",
    ),
    // A character 0 elsewhere in the document, or in what is answered as JSON.
    one(
      'JSONExtractString(\'{"a":"x","b":"y\\\\u0000z"}\', \'a\') AS a, JSONExtractString(\'{"a\\\\u0000b":"x","c":"d"}\', \'c\') AS b',
    ),
    one(
      'JSONExtractString(\'{"b":["y\\\\u0000z"]}\', \'b\') AS a, JSONExtractString(\'{"b":{"k\\\\u0000":"\\\\u0000\\\\u0000"}}\', \'b\') AS b',
    ),
    one('JSONExtractString(\'{"a":"q\\\\\\\\u0000","c":"\\\\u0000"}\', \'a\') AS a'),
    one('JSONExtractString(\'{"a":"\\\\u00fc"}\', \'a\') AS a, JSONExtractString(\'{"a":"q\\\\"q"}\', \'a\') AS b'),
    "SELECT JSONExtractString(external_id, 'plan') AS plan, count() AS n FROM key_verifications_v1 GROUP BY plan ORDER BY plan",
    "SELECT JSONExtractString(external_id, 'seats') AS seats, count() AS n FROM key_verifications_v1 GROUP BY seats ORDER BY seats",
  ]),
];
