package object

// Deployment is a Deployment of apps/v1.
type Deployment struct {
	Head
	Spec DeploymentSpec `json:"spec"`
}

// DeploymentSpec are the replicas of a Deployment.
type DeploymentSpec struct {
	At
	Replicas *int32         `json:"replicas"` // nil: 1
	Selector Selector       `json:"selector"`
	Template PodTemplate    `json:"template"`
	Strategy UpdateStrategy `json:"strategy"`
}

// UpdateStrategy says how an update replaces replicas.
type UpdateStrategy struct {
	At
	Type          string         `json:"type"` // RollingUpdate, Recreate, OnDelete; empty: RollingUpdate
	RollingUpdate *RollingUpdate `json:"rollingUpdate"`
}

// RollingUpdate are the steps of an update.
type RollingUpdate struct {
	At
	MaxUnavailable IntOrString `json:"maxUnavailable"`
	MaxSurge       IntOrString `json:"maxSurge"` // of a Deployment
}

// StatefulSet is a StatefulSet of apps/v1.
type StatefulSet struct {
	Head
	Spec StatefulSetSpec `json:"spec"`
}

// StatefulSetSpec are the replicas of a StatefulSet.
type StatefulSetSpec struct {
	At
	Replicas       *int32         `json:"replicas"` // nil: 1
	Selector       Selector       `json:"selector"`
	Template       PodTemplate    `json:"template"`
	ServiceName    string         `json:"serviceName"`
	UpdateStrategy UpdateStrategy `json:"updateStrategy"`
}

// Service is a Service of v1.
type Service struct {
	Head
	Spec ServiceSpec `json:"spec"`
}

// ServiceSpec are the ports of a Service and the pods behind them.
type ServiceSpec struct {
	At
	Ports                    []ServicePort     `json:"ports"`
	Selector                 map[string]string `json:"selector"`
	ClusterIP                string            `json:"clusterIP"` // None: headless
	Type                     string            `json:"type"`      // empty: ClusterIP
	PublishNotReadyAddresses bool              `json:"publishNotReadyAddresses"`
}

// Headless reports whether the names of its pods resolve, and it has no address itself.
func (s *ServiceSpec) Headless() bool { return s.ClusterIP == "None" }

// ServicePort is one port of a Service.
type ServicePort struct {
	At
	Name       string      `json:"name"`
	Port       int32       `json:"port"`
	TargetPort IntOrString `json:"targetPort"` // none: Port
	Protocol   string      `json:"protocol"`   // empty: TCP
}

// HorizontalPodAutoscaler is a HorizontalPodAutoscaler of autoscaling/v2.
type HorizontalPodAutoscaler struct {
	Head
	Spec AutoscalerSpec `json:"spec"`
}

// AutoscalerSpec are bounds and measures of an autoscaler.
type AutoscalerSpec struct {
	At
	ScaleTargetRef ObjectRef        `json:"scaleTargetRef"`
	MinReplicas    *int32           `json:"minReplicas"` // nil: 1
	MaxReplicas    int32            `json:"maxReplicas"`
	Metrics        []Metric         `json:"metrics"`
	Behavior       *ScalingBehavior `json:"behavior"`
}

// ObjectRef names an object.
type ObjectRef struct {
	At
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// Metric is one measure. Resource, ContainerResource or Pods is not nil, as Type says.
type Metric struct {
	At
	Type              string          `json:"type"`
	Resource          *ResourceMetric `json:"resource"`
	ContainerResource *ResourceMetric `json:"containerResource"`
	Pods              *PodsMetric     `json:"pods"`
}

// ResourceMetric is the use of a resource, of one container or of all.
type ResourceMetric struct {
	At
	Name      string       `json:"name"`
	Container string       `json:"container"`
	Target    MetricTarget `json:"target"`
}

// PodsMetric is a measure that pods report.
type PodsMetric struct {
	At
	Metric MetricName   `json:"metric"`
	Target MetricTarget `json:"target"`
}

// MetricName names a measure.
type MetricName struct {
	At
	Name     string    `json:"name"`
	Selector *Selector `json:"selector"`
}

// MetricTarget is the value to keep.
type MetricTarget struct {
	At
	Type               string   `json:"type"` // Utilization, Value, AverageValue
	Value              Quantity `json:"value"`
	AverageValue       Quantity `json:"averageValue"`
	AverageUtilization *int32   `json:"averageUtilization"` // per cent of the request
}

// ScalingBehavior says how fast an autoscaler scales.
type ScalingBehavior struct {
	At
	ScaleUp   *ScalingRules `json:"scaleUp"`
	ScaleDown *ScalingRules `json:"scaleDown"`
}

// ScalingRules are the rules of one direction.
type ScalingRules struct {
	At
	StabilizationWindowSeconds *int32        `json:"stabilizationWindowSeconds"`
	SelectPolicy               string        `json:"selectPolicy"` // Max, Min, Disabled; empty: Max
	Policies                   []ScalingRule `json:"policies"`
	Tolerance                  Quantity      `json:"tolerance"`
}

// ScalingRule is one bound of the speed.
type ScalingRule struct {
	At
	Type          string `json:"type"` // Pods, Percent
	Value         int32  `json:"value"`
	PeriodSeconds int32  `json:"periodSeconds"`
}
