-- Functions with ClickHouse's semantics, for which plain Postgres expressions would be too long. The planner inlines functions of one
-- expression, so they set no search path: Postgres resolves the names in their bodies when it creates them. Functions that are called per row
-- or group are not strict, because the planner does not inline a strict function with a CASE. They return null for null all the same.

-- 64-bit sums and products wrap in ClickHouse; Postgres rejects them.
create function analytics.wrapped(value numeric) returns bigint
  language sql immutable parallel safe
  return case when value between -9223372036854775808 and 9223372036854775807 then value::bigint
              else (mod(mod(value + 9223372036854775808, 18446744073709551616) + 18446744073709551616, 18446744073709551616)
                    - 9223372036854775808)::bigint end;
create function analytics.plus(a bigint, b bigint) returns bigint
  language sql immutable parallel safe
  return case when a between -4611686018427387904 and 4611686018427387903 and b between -4611686018427387904 and 4611686018427387903
              then a + b else analytics.wrapped(a::numeric + b::numeric) end;
create function analytics.minus(a bigint, b bigint) returns bigint
  language sql immutable parallel safe
  return case when a between -4611686018427387904 and 4611686018427387903 and b between -4611686018427387904 and 4611686018427387903
              then a - b else analytics.wrapped(a::numeric - b::numeric) end;
create function analytics.multiply(a bigint, b bigint) returns bigint
  language sql immutable parallel safe
  return case when a between -2147483648 and 2147483647 and b between -2147483648 and 2147483647
              then a * b else analytics.wrapped(a::numeric * b::numeric) end;

-- 64-bit remainder. The smallest integer modulo -1 is an error in ClickHouse, and a division by zero here.
create function analytics.modulo(a bigint, b bigint) returns bigint
  language sql immutable strict parallel safe
  return a % case when b = -1 and a = -9223372036854775808 then 0 else b end;

create function analytics.divide(a double precision, b double precision) returns double precision
  language sql immutable parallel safe
  return case when b <> 0 then a / b
              when a = 0 or a = 'NaN' or a is null or b is null then case when a is null or b is null then null else 'NaN'::double precision end
              when (a > 0) = (b::text = '0') then 'Infinity'::double precision
              else '-Infinity'::double precision end;

-- In Postgres, NaN equals itself and is greater than every number.
create function analytics.equals(a double precision, b double precision) returns boolean
  language sql immutable parallel safe return a = b and a <> 'NaN';
create function analytics.not_equals(a double precision, b double precision) returns boolean
  language sql immutable parallel safe return a <> b or a = 'NaN';
create function analytics.less(a double precision, b double precision) returns boolean
  language sql immutable parallel safe return a < b and b <> 'NaN';
create function analytics.less_or_equals(a double precision, b double precision) returns boolean
  language sql immutable parallel safe return a <= b and b <> 'NaN';
create function analytics.greater(a double precision, b double precision) returns boolean
  language sql immutable parallel safe return a > b and a <> 'NaN';
create function analytics.greater_or_equals(a double precision, b double precision) returns boolean
  language sql immutable parallel safe return a >= b and a <> 'NaN';

-- Round integers to a multiple of `unit`; round_whole rounds halves away from zero.
create function analytics.round_whole(value bigint, unit bigint) returns bigint
  language sql immutable parallel safe return (value + sign(value)::bigint * (unit / 2)) / unit * unit;
create function analytics.floor_whole(value bigint, unit bigint) returns bigint
  language sql immutable parallel safe return (value - mod(mod(value, unit) + unit, unit));
create function analytics.ceil_whole(value bigint, unit bigint) returns bigint
  language sql immutable parallel safe return (value + mod(unit - mod(value, unit), unit));

create function analytics.to_int64(value double precision) returns bigint
  language sql immutable strict parallel safe return trunc(value)::bigint;
create function analytics.to_int32(value bigint) returns bigint
  language sql immutable parallel safe return ((value + 2147483648) & 4294967295) - 2147483648;

-- Values up to the largest Date are days, larger ones are seconds.
create function analytics.date_of(value bigint) returns date
  language sql immutable parallel safe
  return case when value <= 0 then date '1970-01-01'
              when value <= 65535 then date '1970-01-01' + value::int
              when value <= 4294967295 then (timestamp '1970-01-01' + value * interval '1 second')::date
              when value is not null then date '2106-02-07' end;
create function analytics.date_time_of(value bigint) returns timestamp
  language sql immutable parallel safe
  return case when value <= 0 then timestamp '1970-01-01'
              when value <= 4294967295 then timestamp '1970-01-01' + value * interval '1 second'
              when value is not null then timestamp '2106-02-07 06:28:15' end;
create function analytics.date_time64_of(ms bigint) returns timestamp
  language sql immutable parallel safe return timestamp '1970-01-01' + ms * interval '1 millisecond';

-- A Date has 16 bits (days) and a DateTime 32 bits (seconds); both wrap.
create function analytics.wrapped_date(value date) returns date
  language sql immutable parallel safe
  return case when value between date '1970-01-01' and date '2149-06-06' then value
              else date '1970-01-01' + mod(mod(value - date '1970-01-01', 65536) + 65536, 65536) end;
create function analytics.wrapped_date_time(value timestamp) returns timestamp
  language sql immutable parallel safe
  return case when value between timestamp '1970-01-01' and timestamp '2106-02-07 06:28:15' then value
              else timestamp '1970-01-01' + mod(mod(extract(epoch from value)::bigint, 4294967296) + 4294967296, 4294967296) * interval '1 second'
         end;

-- Times in a zone. A time is in UTC, and `local` is what a clock in the zone shows at that time.
create function analytics.local_of(value timestamp, zone text) returns timestamp
  language sql immutable strict parallel safe return value at time zone 'UTC' at time zone zone;

-- ClickHouse takes the earlier reading of a local time that the zone has twice or lacks; Postgres takes the later one.
create function analytics.instant_of(local timestamp, zone text) returns timestamp
  language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  later constant timestamp := local at time zone zone at time zone 'UTC';
  shown constant timestamp := analytics.local_of(later, zone);
  before constant timestamp := later - interval '4 hours';
  earlier constant timestamp := local - (analytics.local_of(before, zone) - before);
begin
  if shown <> local then return local - (shown - later); end if;
  return case when earlier < later and analytics.local_of(earlier, zone) = local then earlier else later end;
end $$;

-- A day whose midnight the zone lacks begins after the gap. A day that begins before 1970 becomes the next one.
create function analytics.start_of_date(day date, zone text) returns timestamp
  language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  later constant timestamp := day::timestamp at time zone zone at time zone 'UTC';
  before constant timestamp := later - interval '4 hours';
  earlier constant timestamp := day - (analytics.local_of(before, zone) - before);
begin
  if later < timestamp '1970-01-01' then return analytics.start_of_date(day + 1, zone); end if;
  return case when earlier < later and analytics.local_of(earlier, zone) = day then earlier else later end;
end $$;

-- Called per row, therefore without `start_of_date` but for the first day, where ClickHouse has no earlier date.
create function analytics.start_of_day(value timestamp, zone text) returns timestamp
  language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  later constant timestamptz := date_trunc('day', value at time zone 'UTC', zone);
  repeated constant interval := (later - interval '4 hours') at time zone zone + interval '4 hours' - later at time zone zone;
begin
  if value < timestamp '1970-01-02' then
    return analytics.start_of_date(greatest(analytics.local_of(value, zone)::date, date '1970-01-01'), zone);
  end if;
  if repeated > interval '0' and (later - repeated) at time zone zone = later at time zone zone then
    return (later - repeated) at time zone 'UTC';
  end if;
  return later at time zone 'UTC';
end $$;

-- Hours count from the start of the day, also on a day that changes its offset by half an hour.
create function analytics.start_of_hour(value timestamp, zone text) returns timestamp
  language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  return greatest(date_bin('1 hour', value, analytics.start_of_day(value, zone)), timestamp '1970-01-01');
end $$;

-- The time with a whole number of hours where dateDiff counts a boundary: where the zone had one in 1970.
create function analytics.whole_hours(value timestamp, zone text) returns timestamp
  language sql immutable strict parallel safe
  return value - (analytics.local_of(timestamp '1970-01-02', zone) - timestamp '1970-01-02');

-- Calendar steps in a zone from `first` to before `last`.
create function analytics.zoned_steps(first timestamp, last timestamp, step interval, zone text) returns setof timestamp
  language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  value timestamp := first;
begin
  while case when step > interval '0' then value < last else value > last end loop
    return next value;
    value := analytics.instant_of(analytics.local_of(value, zone) + step, zone);
  end loop;
end $$;

-- Offsets and lengths count bytes. The result is text, so that a cut within a character is an error.
create function analytics.substring_bytes(value text, first bigint) returns text
  language sql immutable strict parallel safe
  return case when first = 0 then ''
              else convert_from(substr(convert_to(value, 'UTF8'),
                     least(greatest(case when first > 0 then first else octet_length(value) + first + 1 end, 1), octet_length(value) + 1)::int), 'UTF8')
         end;
create function analytics.substring_bytes(value text, first bigint, length bigint) returns text
  language sql immutable strict parallel safe
  return (select case when first = 0 or s.stop < s.start then ''
                      else convert_from(substr(convert_to(value, 'UTF8'), s.start::int, (s.stop - s.start + 1)::int), 'UTF8') end
            from (select greatest(b.begins, 1) as start,
                         least(case when length >= 0 then b.begins + least(length, 4294967296) - 1 else octet_length(value) + length end, octet_length(value)) as stop
                    from (select case when first > 0 then first else octet_length(value) + first + 1 end as begins) b) s);
create function analytics.ends_with(value text, suffix text) returns boolean
  language sql immutable parallel safe return right(value, char_length(suffix)) = suffix;

-- Shortest digits that represent the number, without an exponent from 1e-6 up to 1e21.
create function analytics.float_text(value double precision) returns text
  language sql immutable strict parallel safe
  return case when value = 'NaN' then 'nan'
              when abs(value) = 'Infinity' then case when value > 0 then 'inf' else '-inf' end
              when value = 0 then value::text
              when abs(value) >= 1e-6 and abs(value) < 1e21 then (value::text)::numeric::text
              else regexp_replace(value::text, 'e\+?(-?)0*', 'e\1') end;

-- Positions start at 1; negative ones count from the end.
create function analytics.element(elements anyarray, place bigint) returns anyelement
  language sql immutable parallel safe as $$
  select case when place between 1 and pg_catalog.cardinality(elements) then elements[place::int]
              when place between -pg_catalog.cardinality(elements) and -1
              then elements[(pg_catalog.cardinality(elements) + 1 + place)::int] end
$$;

-- Expects sorted values. Interpolates between two neighbors.
create function analytics.quantile(sorted double precision[], level double precision) returns double precision
  language sql immutable strict parallel safe
  return (select case when floor(p.place)::int + 1 >= cardinality(sorted) then sorted[cardinality(sorted)]
                      else (floor(p.place) + 1 - p.place) * sorted[floor(p.place)::int + 1]
                           + (p.place - floor(p.place)) * sorted[floor(p.place)::int + 2] end
            from (select level * (cardinality(sorted) - 1) as place) p);

-- Compact JSON text of a value.
create function analytics.json_compact(value json) returns text
  language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  return case json_typeof(value)
    when 'object' then '{' || coalesce((select string_agg(to_json(e.key)::text || ':' || analytics.json_compact(e.value), ',' order by e.place)
                                          from json_each(value) with ordinality as e(key, value, place)), '') || '}'
    when 'array' then '[' || coalesce((select string_agg(analytics.json_compact(e.value), ',' order by e.place)
                                         from json_array_elements(value) with ordinality as e(value, place)), '') || ']'
    when 'number' then case when value::text ~ '[.eE]' then analytics.float_text(value::text::double precision) else value::text end
    when 'string' then to_json(value #>> '{}')::text
    else value::text
  end;
end $$;
-- Text of a member: a string as it is, '' if missing, otherwise compact JSON. Postgres text cannot contain character 0, so `\u0000` is read as
-- U+FDD0, which no document contains (a noncharacter), and becomes `\u0000` again in JSON results. A string with character 0 is ''.
create function analytics.json_string(document text, keys text[]) returns text
  language plpgsql immutable parallel unsafe set search_path = pg_catalog, pg_temp as $$
declare
  value json;
  name text;
  found text;
begin
  -- After an odd number of further backslashes, this backslash is itself escaped.
  if strpos(document, '\u0000') > 0 then
    document := regexp_replace(document, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufdd0', 'g');
  end if;
  value := document::json;
  foreach name in array keys loop
    if json_typeof(value) is distinct from 'object' then return ''; end if;
    -- The first of several members with one name.
    value := (select e.value from json_each(value) as e(key, value) where e.key = name limit 1);
  end loop;
  if json_typeof(value) = 'string' then
    found := value #>> '{}';
    return case when strpos(found, U&'\FDD0') > 0 then '' else found end;
  end if;
  return case json_typeof(value) when 'null' then '' else coalesce(replace(analytics.json_compact(value), U&'\FDD0', '\u0000'), '') end;
exception when invalid_text_representation or untranslatable_character or numeric_value_out_of_range then
  return '';
end $$;

-- Numbers in text. Other text is an error, also blanks and notations that a cast would accept.
create function analytics.whole_of(value text) returns bigint
  language sql immutable strict parallel safe
  return case when value ~ '^[+-]?[0-9]+$' then analytics.wrapped(value::numeric) else ('not a whole number: ' || left(value, 40))::bigint end;
create function analytics.float_of(value text) returns double precision
  language sql immutable strict parallel safe
  return case when value ~* '^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$|^-?(nan|inf)$' then value::double precision
              else ('not a number: ' || left(value, 40))::double precision end;
