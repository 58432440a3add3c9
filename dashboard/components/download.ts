/** Offers a text as a download. The browser creates the file, so the text is not sent to a server. */
export function downloadText({ name, text, type }: { name: string; text: string; type: string }): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads the URL after the current task, so the URL is revoked later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Downloads the result of `csvOf`. The byte order mark tells spreadsheets that the file is UTF-8. */
export const downloadCsv = (name: string, csv: string): void =>
  downloadText({ name, text: `\uFEFF${csv}`, type: "text/csv;charset=utf-8" });
