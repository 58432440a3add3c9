/* Parses Kubernetes quantities, such as `10m` and `64Mi`. */

const UNITS: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const QUANTITY = /^(\d{1,15}(?:\.\d{1,9})?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/;

/** Returns the value of a quantity above 0, with enough precision for comparisons; `undefined` for any other text. */
export function parseQuantity(text: string): number | undefined {
  const [, digits, unit = ""] = QUANTITY.exec(text) ?? [];
  const value = Number(digits) * (UNITS[unit] ?? Number.NaN);
  return value > 0 ? value : undefined;
}
