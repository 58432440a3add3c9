-- Who is signed in to the dashboard. People, not backends: each of their calls reads its row by the hash of its token. So there are no
-- triggers that announce changes, and nothing of a session is cached or sent to Redis: a session that is ended here has ended everywhere.
create table sessions (
  id           text primary key,
  -- SHA-256 of the token in the cookie, which is stored nowhere.
  token_hash   text not null unique,
  -- The person: whose word it is, and the name of the person there.
  issuer       text not null,
  subject      text not null,
  name         text not null,
  email        text,
  signed_in_by text not null check (signed_in_by in ('link', 'oidc')),
  -- By OpenID Connect: the groups, from which the file in force makes roles at each call.
  groups       jsonb not null default '[]',
  -- By a link: what it gave, as [{"workspace": id or "*", "role": …}].
  roles        jsonb not null default '[]',
  remote_ip    text,
  user_agent   text,
  created_at   bigint not null,
  -- Written at most once a minute.
  last_seen_at bigint not null,
  -- The session ends then however much it is used.
  expires_at   bigint not null,
  -- When it was ended: by signing out, here or everywhere, or by the next sign-in with its cookie.
  ended_at     bigint
);
create index sessions_by_person on sessions (issuer, subject, created_at desc);
create index sessions_by_end on sessions (expires_at);

-- Links that sign a person in, once. The token is in the link alone.
create table sign_in_links (
  id           text primary key,
  token_hash   text not null unique,
  name         text not null,
  role         text not null,
  -- null means all workspaces.
  workspace_id text references workspaces (id),
  -- As the audit log names who made it.
  made_by      text not null,
  created_at   bigint not null,
  expires_at   bigint not null,
  used_at      bigint
);
create index sign_in_links_by_end on sign_in_links (expires_at);
