-- Sign-ins with an OpenID provider that have begun and not ended. The row is deleted by the request that ends one, which makes it single
-- use among all replicas.
create table sign_in_flows (
  -- SHA-256 of what the browser has in a cookie of its own for the time of the sign-in.
  browser_hash  text primary key,
  state         text not null,
  nonce         text not null,
  -- PKCE (RFC 7636).
  code_verifier text not null,
  -- The page that was wanted: a path below /dashboard/.
  return_to     text not null,
  expires_at    bigint not null
);
create index sign_in_flows_by_end on sign_in_flows (expires_at);
