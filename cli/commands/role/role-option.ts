export const role = {
  type: "string",
  placeholder: "ROLE",
  help: "its id, role_…, or its name",
  required: true,
} as const;
