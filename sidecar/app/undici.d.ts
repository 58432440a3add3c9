// undici types its entry only. Why its inner files are imported: docs/decisions/0013-two-inner-files-of-undici.md.
declare module "undici/lib/dispatcher/pool.js" {
  const Pool: typeof import("undici").Pool;
  export default Pool;
}
declare module "undici/lib/core/connect.js" {
  const buildConnector: typeof import("undici").buildConnector;
  export default buildConnector;
}
