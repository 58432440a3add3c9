import type { ApiSettingsRow } from "../../../api-server/db/apis.ts";
import { type Fields, instantText } from "../../fields.ts";

const onOff = (on: boolean): string => (on ? "on" : "off");

export const apiFields: Fields<ApiSettingsRow> = [
  { name: "apiId", title: "id", value: (row) => row.id },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  {
    name: "ipAllowList",
    title: "ip allow-list",
    value: (row) => row.ip_allow_list,
    text: (row) => row.ip_allow_list.join(",") || "none",
    shrinks: true,
  },
  {
    name: "deleteProtection",
    title: "delete protection",
    value: (row) => row.delete_protection,
    text: (row) => onOff(row.delete_protection),
  },
  {
    name: "defaultPrefix",
    title: "default prefix",
    value: (row) => row.default_prefix,
    text: (row) => row.default_prefix ?? "none",
  },
  {
    name: "defaultByteLength",
    title: "default bytes",
    value: (row) => row.default_byte_length,
    text: (row) => String(row.default_byte_length ?? "none"),
  },
  {
    name: "keyEncryption",
    title: "key encryption",
    value: (row) => row.key_encryption,
    text: (row) => onOff(row.key_encryption),
  },
  { name: "manager", title: "managed by", value: (row) => row.manager, shrinks: true },
  { name: "createdAt", title: "created", value: (row) => row.created_at, text: (row) => instantText(row.created_at) },
];
