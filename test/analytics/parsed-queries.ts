/**
 * Queries and what the parser makes of them, printed again with parentheses. The columns and functions exist nowhere: it is about the grammar alone.
 */
export const PARSED_QUERIES: readonly (readonly [text: string, printed: string])[] = [
  ["select a from t", "SELECT `a` FROM `t`"],
  [
    "select a, b as c, d e, 'x' \"y z\", `f g`.h from t x",
    "SELECT `a`, `b` AS `c`, `d` AS `e`, 'x' AS `y z`, `f g`.`h` FROM `t` AS `x`",
  ],
  ["select distinct a from t", "SELECT DISTINCT `a` FROM `t`"],
  ["select all a from t", "SELECT `a` FROM `t`"],
  ["select *, t.*, count(*) from t", "SELECT *, `t`.*, count(*) FROM `t`"],
  ["select a from t limit 5 -- x\n;;", "SELECT `a` FROM `t` LIMIT 5"],
  [
    "select limit, offset, a.limit from t where limit > 5 limit 5 offset 6",
    "SELECT `limit`, `offset`, `a`.`limit` FROM `t` WHERE (`limit` > 5) LIMIT 5 OFFSET 6",
  ],
  ["select a from t limit 1, 2", "SELECT `a` FROM `t` LIMIT 2 OFFSET 1"],
  ["select a from t offset 2", "SELECT `a` FROM `t` OFFSET 2"],
  ["select x from t array join a as x where x", "SELECT `x` FROM `t` ARRAY JOIN `a` AS `x` WHERE `x`"],
  ["select x from t as u inner array join u.a as x", "SELECT `x` FROM `t` AS `u` ARRAY JOIN `u`.`a` AS `x`"],
  [
    "select x from t join u using c left array join [a, b] as x",
    "SELECT `x` FROM `t` INNER JOIN `u` USING (`c`) LEFT ARRAY JOIN [`a`,`b`] AS `x`",
  ],
  ["select a from t limit 1 by a, b + 1", "SELECT `a` FROM `t` LIMIT 1 BY `a`, (`b` + 1)"],
  ["select a from t limit 1, 2 by a limit 3, 4", "SELECT `a` FROM `t` LIMIT 2 OFFSET 1 BY `a` LIMIT 4 OFFSET 3"],
  [
    "select a from t order by b limit 2 offset 1 by limit as x limit 4 offset 3",
    "SELECT `a` FROM `t` ORDER BY `b` LIMIT 2 OFFSET 1 BY `limit` AS `x` LIMIT 4 OFFSET 3",
  ],
  ["select date, interval, timestamp from t", "SELECT `date`, `interval`, `timestamp` FROM `t`"],
  [
    "select a as date from t group by date order by date",
    "SELECT `a` AS `date` FROM `t` GROUP BY `date` ORDER BY `date`",
  ],
  ["select sum(limit) limit_sum from t", "SELECT sum(`limit`) AS `limit_sum` FROM `t`"],
  ["select a or b and c or not d from t", "SELECT (`a` or (`b` and `c`) or (not(`d`))) FROM `t`"],
  ["select not a = b and c from t", "SELECT ((not((`a` = `b`))) and `c`) FROM `t`"],
  ["select 1 + not a = b or c from t", "SELECT ((1 + (not((`a` = `b`)))) or `c`) FROM `t`"],
  ["select a between 1 and 2 and 3 from t", "SELECT ((`a` BETWEEN 1 AND 2) and 3) FROM `t`"],
  ["select a not between 1 and 2 = b from t", "SELECT (`a` NOT BETWEEN 1 AND (2 = `b`)) FROM `t`"],
  ["select a is null = b from t", "SELECT ((`a` IS NULL) = `b`) FROM `t`"],
  ["select a = b is not null from t", "SELECT ((`a` = `b`) IS NOT NULL) FROM `t`"],
  ["select not a is null from t", "SELECT (not((`a` IS NULL))) FROM `t`"],
  ["select a < b < c from t", "SELECT ((`a` < `b`) < `c`) FROM `t`"],
  ["select a || b + c || d from t", "SELECT (`a` || (`b` + `c`) || `d`) FROM `t`"],
  ["select 1 - 2 - -3 from t", "SELECT ((1 - 2) - -3) FROM `t`"],
  ["select a % b * c / d from t", "SELECT (((`a` % `b`) * `c`) / `d`) FROM `t`"],
  ["select a mod b from t", "SELECT (`a` % `b`) FROM `t`"],
  ["select a == b, a <> b from t", "SELECT (`a` = `b`), (`a` != `b`) FROM `t`"],
  [
    "select - -1, -(-1), +a, -a::Int64, -1::Int64, -a[1] from t",
    "SELECT (-(-1)), (-(-1)), `a`, (-(`a`::Int64)), -1::Int64, (-(`a`[1])) FROM `t`",
  ],
  ["select a like b like c from t", "SELECT ((`a` LIKE `b`) LIKE `c`) FROM `t`"],
  ["select a not like 'x' and b not ilike 'y' from t", "SELECT ((`a` NOT LIKE 'x') and (`b` NOT ILIKE 'y')) FROM `t`"],
  ["select a in (1) = b from t", "SELECT ((`a` IN (1)) = `b`) FROM `t`"],
  ["select a = b in (1, 'x', -2, null, [1]) from t", "SELECT ((`a` = `b`) IN (1, 'x', -2, null, [1])) FROM `t`"],
  ["select not a in (1) from t", "SELECT (not((`a` IN (1)))) FROM `t`"],
  ["select a not in (select b from u) from t", "SELECT (`a` NOT IN (SELECT `b` FROM `u`)) FROM `t`"],
  [
    "select a in ((select b from u) union all select c from v) from t",
    "SELECT (`a` IN (SELECT `b` FROM `u` UNION ALL SELECT `c` FROM `v`)) FROM `t`",
  ],
  ["select a in ((1), (2)) from t", "SELECT (`a` IN (1, 2)) FROM `t`"],
  ["select a[1][2], t.a[-1], [1,2][1], [] from t", "SELECT `a`[1][2], `t`.`a`[-1], [1,2][1], [] FROM `t`"],
  [
    "select a::Array(String), cast(a as Nullable(Int64)), cast(a, 'DateTime64(3, \\'UTC\\')'), cast(a as b as String) from t",
    "SELECT `a`::Array(String), `a`::Nullable(Int64), `a`::DateTime64(3,'UTC'), (`a` AS `b`)::String FROM `t`",
  ],
  [
    "select case when a then 1 when b then 2 else 3 end, case a when 1 then 2 end from t",
    "SELECT CASE WHEN `a` THEN 1 WHEN `b` THEN 2 ELSE 3 END, CASE `a` WHEN 1 THEN 2 END FROM `t`",
  ],
  [
    "select interval 7 day, interval '7' days, interval '7 day', interval a + 1 hour, interval -1 month, interval '-2 weeks' from t",
    "SELECT INTERVAL 7 DAY, INTERVAL '7' DAY, INTERVAL 7 DAY, INTERVAL (`a` + 1) HOUR, INTERVAL -1 MONTH, INTERVAL -2 WEEK FROM `t`",
  ],
  [
    "select interval '1 day' + a, a - interval '2' day * 3 from t",
    "SELECT (INTERVAL 1 DAY + `a`), (`a` - (INTERVAL '2' DAY * 3)) FROM `t`",
  ],
  ["select now() - interval 1 day * 2 from t", "SELECT (now() - (INTERVAL 1 DAY * 2)) FROM `t`"],
  [
    "select date '2024-01-31', timestamp '2024-01-31 00:00:00', date('2024-01-31') from t",
    "SELECT toDate('2024-01-31'), toDateTime('2024-01-31 00:00:00'), date('2024-01-31') FROM `t`",
  ],
  [
    "select null, TRUE, false, NaN, inf, Infinity, `null` from t",
    "SELECT null, true, false, nan, inf, inf, `null` FROM `t`",
  ],
  [
    "select count(), count(distinct a), sum(all a), sum(a) filter (where b), quantile(0.95)(c), quantile(0.5)(distinct c) from t",
    "SELECT count(), count(DISTINCT `a`), sum(`a`), sum(`a`) FILTER (WHERE `b`), quantile(0.95)(`c`), quantile(0.5)(DISTINCT `c`) FROM `t`",
  ],
  [
    "select arrayFilter(x -> x like 'a%' and x != 'b', tags), f((x, y) -> x, 1), f((x) -> x) from t",
    "SELECT arrayFilter((`x`) -> ((`x` LIKE 'a%') and (`x` != 'b')), `tags`), f((`x`, `y`) -> `x`, 1), f((`x`) -> `x`) FROM `t`",
  ],
  [
    "select sum(a) over w, rank() over (), sum(a) over (partition by a, b order by c desc nulls last rows between 1 preceding and unbounded following) from t window w as (order by a range unbounded preceding), v as ()",
    "SELECT sum(`a`) OVER `w`, rank() OVER ( ), sum(`a`) OVER (PARTITION BY `a`, `b` ORDER BY `c` DESC NULLS LAST ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) FROM `t` WINDOW `w` AS (ORDER BY `a` RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), `v` AS ( )",
  ],
  ["select lag(a, 1) over (order by b) as c from t", "SELECT lag(`a`, 1) OVER (ORDER BY `b` ) AS `c` FROM `t`"],
  [
    "select (select 1 from t), exists (select 1 from t), ((select 1 from t)), ((select 1 from t) union all (select 2 from t)), ((select 1 from t) + 1) from t",
    "SELECT (SELECT 1 FROM `t`), EXISTS (SELECT 1 FROM `t`), (SELECT 1 FROM `t`), (SELECT 1 FROM `t` UNION ALL SELECT 2 FROM `t`), ((SELECT 1 FROM `t`) + 1) FROM `t`",
  ],
  [
    "select (a as b) + b, f(a as c, c), [a as d] from t where a as e group by a as f order by a as g",
    "SELECT ((`a` AS `b`) + `b`), f(`a` AS `c`, `c`), [`a` AS `d`] FROM `t` WHERE (`a` AS `e`) GROUP BY (`a` AS `f`) ORDER BY (`a` AS `g`)",
  ],
  ["select a from t, u cross join v", "SELECT `a` FROM `t` CROSS JOIN `u` CROSS JOIN `v`"],
  [
    "select a from t join u on t.a = u.b left outer join v using (a, b) right join w using c full join (select 1 from t) as x on 1",
    "SELECT `a` FROM `t` INNER JOIN `u` ON (`t`.`a` = `u`.`b`) LEFT JOIN `v` USING (`a`, `b`) RIGHT JOIN `w` USING (`c`) FULL JOIN (SELECT 1 FROM `t`) AS `x` ON 1",
  ],
  [
    "select a from (select a from t) x join ((select b from u)) on a = b",
    "SELECT `a` FROM (SELECT `a` FROM `t`) AS `x` INNER JOIN (SELECT `b` FROM `u`) ON (`a` = `b`)",
  ],
  [
    "select a from t where b group by c, 1 having d order by e asc, f desc nulls first, 1 limit 1 offset 2",
    "SELECT `a` FROM `t` WHERE `b` GROUP BY `c`, 1 HAVING `d` ORDER BY `e`, `f` DESC NULLS FIRST, 1 LIMIT 1 OFFSET 2",
  ],
  [
    "select a from t order by a desc with fill from 1 to 2 step -1, b with fill",
    "SELECT `a` FROM `t` ORDER BY `a` DESC WITH FILL FROM 1 TO 2 STEP -1, `b` WITH FILL ",
  ],
  [
    "with a as (select 1 from t), 2 as b, c as ((select 3 from t)), (select 4 from t) as d, f(x) as e select b from a",
    "WITH `a` AS (SELECT 1 FROM `t`), 2 AS `b`, `c` AS (SELECT 3 FROM `t`), (SELECT 4 FROM `t`) AS `d`, f(`x`) AS `e` SELECT `b` FROM `a`",
  ],
  [
    "select a from t union all select b from t except select c from t union distinct select d from t except distinct select e from t except all select f from t",
    "SELECT `a` FROM `t` UNION ALL SELECT `b` FROM `t` EXCEPT SELECT `c` FROM `t` UNION DISTINCT SELECT `d` FROM `t` EXCEPT DISTINCT SELECT `e` FROM `t` EXCEPT SELECT `f` FROM `t`",
  ],
  [
    "(select a from t) union all (select b from t except select c from t)",
    "SELECT `a` FROM `t` UNION ALL (SELECT `b` FROM `t` EXCEPT SELECT `c` FROM `t`)",
  ],
  ["((select a from t))", "SELECT `a` FROM `t`"],
  [
    "select a from t order by a limit 1 union all select b from t limit 3",
    "SELECT `a` FROM `t` ORDER BY `a` LIMIT 1 UNION ALL SELECT `b` FROM `t` LIMIT 3",
  ],
];
