-- Health of the postern.dev kinds for Argo CD: put it into the ConfigMap argocd-cm under resource.customizations.health.postern.dev_<Kind>.
-- Equals kstatus, so that Argo CD and Flux agree: Stalled is Degraded, Ready is Healthy, everything else is Progressing. No object is
-- Suspended.
-- A policy is Healthy when it is stored. Enforcement by pods is in the message only, because the pods may belong to a later sync
-- wave, which would never start.
local found = {}
local conditions = obj.status ~= nil and obj.status.conditions or {}
for _, condition in ipairs(conditions) do
  -- Ignores conditions of an older generation.
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
