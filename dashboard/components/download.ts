/** Offers a text to the person as a file. It is made here, so nothing of it goes to a server. */
export function downloadText({ name, text, type }: { name: string; text: string; type: string }): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads it after this turn of the event loop.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** For what `csvOf` made. The mark at the beginning tells spreadsheets that it is UTF-8. */
export const downloadCsv = (name: string, csv: string): void =>
  downloadText({ name, text: `\uFEFF${csv}`, type: "text/csv;charset=utf-8" });
