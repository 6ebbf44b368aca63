package preflight

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
)

// LabelEverywhere on a namespace, with the value "true", lets its pods onto nodes that are kept
// for pools: those of the cluster's own parts, which have to run everywhere.
const LabelEverywhere = "coxswain.sh/everywhere"

// requesterExpression is the CEL expression by which a policy knows who asks.
func requesterExpression(s settings.Subject) string {
	switch s.Kind {
	case "Group":
		return fmt.Sprintf("has(request.userInfo.groups) && %q in request.userInfo.groups", s.Name)
	case "ServiceAccount":
		return fmt.Sprintf("request.userInfo.username == %q", "system:serviceaccount:"+s.Namespace+":"+s.Name)
	}
	return fmt.Sprintf("request.userInfo.username == %q", s.Name)
}

// daemonset is the CEL expression for a pod that a DaemonSet's controller makes. Anybody can
// write such an owner into a pod, so it has to be that controller who asks.
const daemonset = `(request.userInfo.username in ["system:serviceaccount:kube-system:daemon-set-controller", "system:kube-controller-manager"]) && ` +
	`has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(r, r.kind == "DaemonSet" && has(r.controller) && r.controller)`

// tolerationExpression is the CEL expression that the tolerations of a pod bear the pool's taint.
func tolerationExpression(t *settings.Terms, pod string) string {
	return fmt.Sprintf(`%[1]s != null && has(%[1]s.spec) && has(%[1]s.spec.tolerations) && %[1]s.spec.tolerations.exists(t, `+
		`(!has(t.effect) || t.effect in ["", "NoSchedule"]) && (!has(t.key) || t.key == "" || t.key == %[2]q && `+
		`(has(t.operator) && !(t.operator in ["", "Equal"]) || has(t.value) && t.value == %[3]q)))`, pod, settings.TaintPool, t.Pool)
}

// Policy keeps others' pods off the nodes that the pool's ConfigMap names, but for those of
// DaemonSets, of static pods, and of the namespaces that may go everywhere. Who is not an other.
// Without that ConfigMap it refuses nothing.
func Policy(t *settings.Terms, who settings.Subject) (*admission.ValidatingAdmissionPolicy, *admission.ValidatingAdmissionPolicyBinding) {
	name := t.ReserveName()
	fail, equivalent, allow, all := admission.Fail, admission.Equivalent, admission.AllowAction, admission.AllScopes
	on := func(resources []string, operations ...admission.OperationType) admission.NamedRuleWithOperations {
		return admission.NamedRuleWithOperations{RuleWithOperations: admission.RuleWithOperations{Operations: operations, Rule: admission.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources, Scope: &all,
		}}}
	}
	p := &admission.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admission.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			ParamKind:     &admission.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: &admission.MatchResources{
				MatchPolicy: &equivalent, ObjectSelector: &metav1.LabelSelector{},
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"}},
					{Key: LabelEverywhere, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
				}},
				ResourceRules: []admission.NamedRuleWithOperations{
					on([]string{"pods"}, admission.Create, admission.Update), // tolerations can be added later
					on([]string{"pods/binding", "bindings"}, admission.Create),
				},
			},
			MatchConditions: []admission.MatchCondition{
				{Name: "others", Expression: "!(" + requesterExpression(who) + ")"},
				{Name: "no-daemonset", Expression: `!(request.kind.kind == "Pod" && ` + strings.ReplaceAll(daemonset, "object.", "dyn(object).") + ")"},
				{Name: "no-kubelet", Expression: `!(has(request.userInfo.groups) && "system:nodes" in request.userInfo.groups)`}, // static pods
			},
			Variables: []admission.Variable{
				{Name: "nodes", Expression: "has(params.data) ? params.data : {}"},
				{Name: "it", Expression: "dyn(object)"},
				{Name: "was", Expression: "dyn(oldObject)"},
				{Name: "pod", Expression: `request.kind.kind == "Pod"`},
			},
			Validations: policyValidations(t),
		},
	}
	b := &admission.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admission.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admission.ValidationAction{admission.Deny},
			ParamRef: &admission.ParamRef{Name: name, Namespace: t.Namespace, ParameterNotFoundAction: &allow},
		},
	}
	return p, b
}

// policyValidations are what is refused: going round the scheduler, and the taint borne.
func policyValidations(t *settings.Terms) []admission.Validation {
	kept := fmt.Sprintf(" is kept for the pool %s of Coxswain: ", t.Pool)
	return []admission.Validation{
		{
			Expression:        `!variables.pod || request.operation != "CREATE" || !has(variables.it.spec.nodeName) || !(variables.it.spec.nodeName in variables.nodes)`,
			MessageExpression: "'node ' + variables.it.spec.nodeName + " + celString(kept+"leave nodeName away"),
		},
		{
			Expression:        `variables.pod || request.userInfo.username == "system:kube-scheduler" || !(variables.it.target.name in variables.nodes)`,
			MessageExpression: "'node ' + variables.it.target.name + " + celString(kept+"pods of others are not bound to it"),
		},
		{
			Expression: "!variables.pod || !(" + tolerationExpression(t, "variables.it") + `) || request.operation == "UPDATE" && ` + tolerationExpression(t, "variables.was"),
			Message: fmt.Sprintf("this pod bears the taint %s=%s, by which nodes are kept for the pool %s of Coxswain: name the taints that it has to bear, by their keys; what has to run everywhere is a DaemonSet's, or in a namespace with the label %s=true",
				settings.TaintPool, t.Pool, t.Pool, LabelEverywhere),
		},
	}
}

// celString is a text as CEL has it.
func celString(s string) string { return fmt.Sprintf("%q", s) }

// PolicyManifest is the policy and its binding for kubectl apply -f -.
func PolicyManifest(t *settings.Terms, who settings.Subject) (string, error) {
	p, b := Policy(t, who)
	var docs []string
	for _, o := range []any{p, b} {
		text, err := json.Marshal(o)
		if err == nil {
			text, err = yaml.JSONToYAML(text)
		}
		if err != nil {
			return "", err
		}
		docs = append(docs, string(text))
	}
	return strings.Join(docs, "---\n"), nil
}
