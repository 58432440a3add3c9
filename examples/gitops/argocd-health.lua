-- Health of the kinds of postern.dev for Argo CD: in the ConfigMap argocd-cm, under resource.customizations.health.postern.dev_<Kind>.
-- It says what kstatus says, so that Argo CD and Flux agree: Stalled is Degraded, Ready is Healthy, all else is Progressing. No object
-- is ever Suspended.
-- A policy is Healthy when the store has it. That pods enforce it stands in the message and not in the health: they may belong to a
-- later sync wave, which would never begin.
local found = {}
local conditions = obj.status ~= nil and obj.status.conditions or {}
for _, condition in ipairs(conditions) do
  -- What is said of an older generation does not count.
  if condition.observedGeneration == obj.metadata.generation then
    found[condition.type] = condition
  end
end
local function is(type, status)
  return found[type] ~= nil and found[type].status == status
end
if is("Reconciling", "True") then
  return { status = "Progressing", message = found.Reconciling.message }
end
if is("Stalled", "True") then
  return { status = "Degraded", message = found.Stalled.message }
end
if is("Ready", "True") then
  local message = found.Ready.message
  if is("Enforced", "False") then
    message = message .. " Not enforced: " .. found.Enforced.message
  end
  return { status = "Healthy", message = message }
end
return { status = "Progressing", message = found.Ready ~= nil and found.Ready.message or "Waiting for the operator." }
