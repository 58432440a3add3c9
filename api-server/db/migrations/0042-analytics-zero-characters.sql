-- A text of Postgres holds no character 0, so `\u0000` anywhere in a document made it unreadable, also its other members. It is read as a
-- character that no document has (U+FDD0, a noncharacter). In an answer that is JSON itself it becomes `\u0000` again; a member that is a text with
-- a character 0 cannot be answered and is ''.
create or replace function analytics.json_string(document text, keys text[]) returns text
  language plpgsql immutable parallel unsafe set search_path = pg_catalog, pg_temp as $$
declare
  value json;
  wanted text;
  found text;
begin
  -- Not what follows an odd number of backslashes: the last one of those is itself escaped.
  if strpos(document, '\u0000') > 0 then
    document := regexp_replace(document, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufdd0', 'g');
  end if;
  value := document::json;
  foreach wanted in array keys loop
    if json_typeof(value) is distinct from 'object' then return ''; end if;
    -- The first of several members with one name.
    value := (select e.value from json_each(value) as e(key, value) where e.key = wanted limit 1);
  end loop;
  if json_typeof(value) = 'string' then
    found := value #>> '{}';
    return case when strpos(found, U&'\FDD0') > 0 then '' else found end;
  end if;
  return case json_typeof(value) when 'null' then '' else coalesce(replace(analytics.json_compact(value), U&'\FDD0', '\u0000'), '') end;
exception when invalid_text_representation or untranslatable_character or numeric_value_out_of_range then
  return '';
end $$;

-- The remainder of whole numbers of 64 bits. The least one by -1 has none in ClickHouse; here it is an error like that of a division by zero.
create function analytics.modulo(a bigint, b bigint) returns bigint
  language sql immutable strict parallel safe
  return a % case when b = -1 and a = -9223372036854775808 then 0 else b end;
