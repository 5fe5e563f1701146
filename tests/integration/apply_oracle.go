// SPDX-License-Identifier: Apache-2.0

// Program apply_oracle computes server-side apply with sigs.k8s.io/structured-merge-diff, the library of
// Kubernetes' API server, so that a test can compare Tenet's results with it.
//
// The first line of the standard input is a JSON text with the schema, in the library's YAML form; the type of
// objects is called "root".  Each further line is a history: a JSON list of steps, each with the members op
// ("create", "update", "apply" or "reset"), manager, force and object.  The answer to each history is one line: a JSON list
// with an entry for each step, which has either the conflicts, or the new object and the fields of each manager.
//
// The program adds what Kubernetes has around the library: an entry of its own for each manager and operation, no record
// of updates while no manager is recorded, and "before-first-apply" as the owner of what such an object has at its first apply.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/structured-merge-diff/fieldpath"
	"sigs.k8s.io/structured-merge-diff/merge"
	"sigs.k8s.io/structured-merge-diff/typed"
)

const version = fieldpath.APIVersion("v1")

type step struct {
	Op      string      `json:"op"`
	Manager string      `json:"manager"`
	Force   bool        `json:"force"`
	Object  interface{} `json:"object"`
}

type result struct {
	// The manager of each field in conflict.  The packaged version of the library gives wrong fields: their paths share memory.
	Conflicts []string                   `json:"conflicts,omitempty"`
	Object    interface{}                `json:"object,omitempty"`
	Managers  map[string]json.RawMessage `json:"managers,omitempty"`
}

// All objects have one version.
type converter struct{}

func (converter) Convert(v *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return v, nil
}

func (converter) IsMissingVersionError(error) bool { return false }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "apply_oracle:", err)
		os.Exit(1)
	}
}

type state struct {
	root     typed.ParseableType
	live     *typed.TypedValue
	managers fieldpath.ManagedFields
}

// The library changes the map of managers that it gets, also when it reports conflicts.
func (s *state) copyManagers() fieldpath.ManagedFields {
	out := fieldpath.ManagedFields{}
	for name, set := range s.managers {
		out[name] = set
	}
	return out
}

func (s *state) empty() *typed.TypedValue {
	v, err := s.root.FromUnstructured(nil)
	check(err)
	return v
}

func (s *state) update(u *merge.Updater, old, now *typed.TypedValue, manager string) {
	live, managers, err := u.Update(old, now, version, s.copyManagers(), manager+"/Update")
	check(err)
	s.live, s.managers = live, managers
}

func (s *state) apply(u *merge.Updater, config *typed.TypedValue, manager string, force bool) []string {
	before := s.managers
	if len(s.managers) == 0 && s.live != nil {
		s.update(u, s.empty(), s.live, "before-first-apply")
	}
	live := s.live
	if live == nil {
		live = s.empty()
	}
	now, managers, err := u.Apply(live, config, version, s.copyManagers(), manager+"/Apply", force)
	if conflicts, ok := err.(merge.Conflicts); ok {
		s.managers = before
		var out []string
		for _, c := range conflicts {
			out = append(out, c.Manager)
		}
		return out
	}
	check(err)
	s.managers = managers
	if now != nil {
		s.live = now
	}
	if s.live == nil {
		s.live = live
	}
	return nil
}

// Where the library has removed all of a list or map it leaves null, which Kubernetes' types then do not write.
func dropNulls(v interface{}) interface{} {
	switch v := v.(type) {
	case map[string]interface{}:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			} else {
				v[name] = dropNulls(member)
			}
		}
	case []interface{}:
		for i := range v {
			v[i] = dropNulls(v[i])
		}
	}
	return v
}

// The object as it would be stored.
func (s *state) stored() *typed.TypedValue {
	v, _ := s.live.AsValue().Unstructured().(map[string]interface{})
	if spec, ok := v["spec"]; ok && spec == nil {
		v["spec"] = map[string]interface{}{}
	}
	t, err := s.root.FromUnstructured(dropNulls(v))
	check(err)
	return t
}

func (s *state) run(st step) result {
	u := &merge.Updater{Converter: converter{}}
	v, err := s.root.FromUnstructured(st.Object)
	check(err)
	switch {
	case st.Op == "apply":
		if conflicts := s.apply(u, v, st.Manager, st.Force); conflicts != nil {
			return result{Conflicts: conflicts}
		}
	case st.Op == "reset":
		s.live, s.managers = v, fieldpath.ManagedFields{}
	case st.Op == "create":
		s.update(u, s.empty(), v, st.Manager)
	case len(s.managers) == 0:
		s.live = v
	default:
		s.update(u, s.live, v, st.Manager)
	}
	s.live = s.stored()
	r := result{Object: s.live.AsValue().Unstructured(), Managers: map[string]json.RawMessage{}}
	for name, set := range s.managers {
		text, err := set.Set().ToJSON()
		check(err)
		r.Managers[name] = text
	}
	return r
}

func main() {
	in := bufio.NewReader(os.Stdin)
	decoder := json.NewDecoder(in)
	out := json.NewEncoder(os.Stdout)
	var schema string
	check(decoder.Decode(&schema))
	parser, err := typed.NewParser(typed.YAMLObject(schema))
	check(err)
	for decoder.More() {
		var steps []step
		check(decoder.Decode(&steps))
		s := &state{root: parser.Type("root"), managers: fieldpath.ManagedFields{}}
		results := []result{}
		for _, st := range steps {
			results = append(results, s.run(st))
		}
		check(out.Encode(results))
	}
}
