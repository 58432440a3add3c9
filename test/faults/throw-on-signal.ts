/* For `node --import`: turns every SIGUSR2 into an uncaught error, alternately thrown and rejected. */
let count = 0;
process.on("SIGUSR2", () => {
  count += 1;
  const error = new Error(`stray error ${count}`);
  if (count % 2 === 0) void Promise.reject(error);
  else
    setImmediate(() => {
      throw error;
    });
});
