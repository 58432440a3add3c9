// undici types its entry only; its own files have the same things.
declare module "undici/lib/dispatcher/pool.js" {
  const Pool: typeof import("undici").Pool;
  export default Pool;
}
declare module "undici/lib/core/connect.js" {
  const buildConnector: typeof import("undici").buildConnector;
  export default buildConnector;
}
