export const role = {
  type: "string",
  placeholder: "ROLE",
  help: "its id, role_…, or its name",
  required: true,
} as const;
export const permission = {
  type: "string",
  placeholder: "SLUG",
  help: "a permission that it grants",
  repeats: true,
} as const;
