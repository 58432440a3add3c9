// Prints the status that Flux and Argo CD derive from objects: with the library that Flux uses (kstatus), and with a health.lua in the
// interpreter that Argo CD uses.
// Reads {"script": "…", "objects": […]} and prints [{"kstatus": "…", "argocd": {"status": "…", "message": "…"}}, …]; with the argument
// `flux`, reads an array of Flux objects and exits with 1 if an object has an unknown field or a field of the wrong type.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	helm "github.com/fluxcd/helm-controller/api/v2"
	kustomize "github.com/fluxcd/kustomize-controller/api/v1"
	source "github.com/fluxcd/source-controller/api/v1"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type verdict struct {
	Kstatus status.Status `json:"kstatus"`
	Argocd  health        `json:"argocd"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "flux" {
		checkFlux()
		return
	}
	var input struct {
		Script  string            `json:"script"`
		Objects []json.RawMessage `json:"objects"`
	}
	must(json.NewDecoder(os.Stdin).Decode(&input))
	verdicts := []verdict{}
	for _, raw := range input.Objects {
		var object unstructured.Unstructured
		must(object.UnmarshalJSON(raw))
		computed, err := status.Compute(&object)
		must(err)
		verdicts = append(verdicts, verdict{computed.Status, healthOf(input.Script, object.Object)})
	}
	must(json.NewEncoder(os.Stdout).Encode(verdicts))
}

func checkFlux() {
	var objects []json.RawMessage
	must(json.NewDecoder(os.Stdin).Decode(&objects))
	types := map[string]func() any{
		"helm.toolkit.fluxcd.io/v2 HelmRelease":        func() any { return &helm.HelmRelease{} },
		"kustomize.toolkit.fluxcd.io/v1 Kustomization": func() any { return &kustomize.Kustomization{} },
		"source.toolkit.fluxcd.io/v1 GitRepository":    func() any { return &source.GitRepository{} },
	}
	for _, raw := range objects {
		var object unstructured.Unstructured
		must(object.UnmarshalJSON(raw))
		name := object.GetAPIVersion() + " " + object.GetKind()
		make, isKnown := types[name]
		if !isKnown {
			must(fmt.Errorf("%s is not known", name))
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(make()); err != nil {
			must(fmt.Errorf("%s %s: %w", name, object.GetName(), err))
		}
	}
}

// healthOf runs a health script with those libraries of Argo CD that the script uses.
func healthOf(script string, object map[string]any) health {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		must(state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	state.SetGlobal("obj", toLua(state, object))
	must(state.DoString(script))
	result, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		must(fmt.Errorf("the script returned no table"))
	}
	return health{lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))}
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch it := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, member := range it {
			table.RawSetString(key, toLua(state, member))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, member := range it {
			table.Append(toLua(state, member))
		}
		return table
	case string:
		return lua.LString(it)
	case bool:
		return lua.LBool(it)
	case int64:
		return lua.LNumber(it)
	case float64:
		return lua.LNumber(it)
	default:
		return lua.LNil
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
