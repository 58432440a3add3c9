-- Health of the kinds of postern.dev for Argo CD: in the ConfigMap argocd-cm, under resource.customizations.health.postern.dev_<Kind>.
-- An object is healthy when the operator has seen this generation of it and it is Ready; a policy also says whether pods enforce it.
local health = { status = "Progressing", message = "Waiting for the operator" }
if obj.status == nil or obj.status.conditions == nil then
  return health
end
local found = {}
for _, condition in ipairs(obj.status.conditions) do
  -- What is said of an older generation does not count.
  if condition.observedGeneration == obj.metadata.generation then
    found[condition.type] = condition
  end
end
if found.Stalled ~= nil and found.Stalled.status == "True" then
  return { status = "Degraded", message = found.Stalled.message }
end
if found.Ready ~= nil and found.Ready.status == "True" then
  return { status = "Healthy", message = found.Ready.message }
end
if found.Ready ~= nil and found.Ready.status == "False" then
  return { status = "Progressing", message = found.Ready.message }
end
return health
