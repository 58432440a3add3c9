export const id = {
  type: "string",
  placeholder: "ID",
  help: "the key, key_…; not its secret",
  required: true,
} as const;
