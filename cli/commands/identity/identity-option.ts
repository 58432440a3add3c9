export const identity = {
  type: "string",
  placeholder: "IDENTITY",
  help: "its id, id_…, or its external id",
  required: true,
} as const;
