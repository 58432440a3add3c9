-- Sessions of people in the dashboard. Each request reads its session by the hash of its token. Sessions are not cached and not sent to
-- Redis, so that an ended session has ended everywhere.
create table sessions (
  id           text primary key,
  -- SHA-256 of the token in the cookie, which is stored nowhere.
  token_hash   text not null unique,
  -- The person: identity provider, and subject there.
  issuer       text not null,
  subject      text not null,
  name         text not null,
  email        text,
  signed_in_by text not null check (signed_in_by in ('link', 'oidc')),
  -- With OpenID Connect: the groups, which the current roles file maps to roles at each request.
  groups       jsonb not null default '[]',
  -- With a link: its roles, as [{"workspace": id or "*", "role": …}].
  roles        jsonb not null default '[]',
  -- With a link: who made it.
  link_made_by text,
  remote_ip    text,
  user_agent   text,
  created_at   bigint not null,
  -- Updated at most once a minute.
  last_seen_at bigint not null,
  -- End of the session, regardless of its use.
  expires_at   bigint not null,
  -- Time of the sign-out, or of the next sign-in with the same cookie.
  ended_at     bigint
);
create index sessions_by_person on sessions (issuer, subject, created_at desc);
create index sessions_by_end on sessions (expires_at);

-- Single-use sign-in links. Only the link contains the token.
create table sign_in_links (
  id                 text primary key,
  token_hash         text not null unique,
  name               text not null,
  role               text not null,
  -- null: all workspaces.
  workspace_id       text references workspaces (id),
  -- Name of the creator in the audit log.
  created_by         text not null,
  -- The creator's session, which takes its unused links along when an admin ends it.
  created_by_session text,
  -- Latest end of the link's session. It is set if the creator's own session came from a link.
  session_expires_at bigint,
  created_at         bigint not null,
  expires_at         bigint not null,
  used_at            bigint
);
create index sign_in_links_by_end on sign_in_links (expires_at);

-- Sign-ins with an OpenID provider that have started. The request that completes one deletes its row, so that each completes once among all
-- replicas.
create table sign_in_flows (
  -- SHA-256 of a cookie that the browser has during the sign-in.
  browser_hash  text primary key,
  state         text not null,
  nonce         text not null,
  -- PKCE (RFC 7636).
  code_verifier text not null,
  -- Requested page: a path below /dashboard/.
  return_to     text not null,
  expires_at    bigint not null
);
create index sign_in_flows_by_end on sign_in_flows (expires_at);
