package kubernetes

// The part of batch/v1 and core/v1 that the manifests use, in the API's own order and names. A module of its own decodes them into the API's
// types (k8s/).

type job struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       jobSpec  `yaml:"spec"`
}

type metadata struct {
	Name      string            `yaml:"name,omitempty"`
	Namespace string            `yaml:"namespace,omitempty"`
	Labels    map[string]string `yaml:"labels,omitempty"`
}

type jobSpec struct {
	CompletionMode       string           `yaml:"completionMode"`
	Completions          int              `yaml:"completions"`
	Parallelism          int              `yaml:"parallelism"`
	Suspend              bool             `yaml:"suspend,omitempty"`
	BackoffLimitPerIndex int              `yaml:"backoffLimitPerIndex"`
	MaxFailedIndexes     int              `yaml:"maxFailedIndexes,omitempty"`
	PodReplacementPolicy string           `yaml:"podReplacementPolicy"`
	PodFailurePolicy     podFailurePolicy `yaml:"podFailurePolicy"`
	Template             struct {
		Metadata metadata `yaml:"metadata"`
		Spec     podSpec  `yaml:"spec"`
	} `yaml:"template"`
}

type podFailurePolicy struct {
	Rules []failureRule `yaml:"rules"`
}

type failureRule struct {
	Action          string         `yaml:"action"`
	OnPodConditions []podCondition `yaml:"onPodConditions,omitempty"`
	OnExitCodes     *onExitCodes   `yaml:"onExitCodes,omitempty"`
}

type podCondition struct {
	Type   string `yaml:"type"`
	Status string `yaml:"status"`
}

type onExitCodes struct {
	ContainerName string `yaml:"containerName"`
	Operator      string `yaml:"operator"`
	Values        []int  `yaml:"values,flow"`
}

type podSpec struct {
	RestartPolicy                 string      `yaml:"restartPolicy"`
	TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
	ServiceAccountName            string      `yaml:"serviceAccountName,omitempty"`
	SecurityContext               podSecurity `yaml:"securityContext"`
	Containers                    []container `yaml:"containers"`
	Volumes                       []volume    `yaml:"volumes"`
}

type podSecurity struct {
	RunAsNonRoot   bool    `yaml:"runAsNonRoot"`
	RunAsUser      int64   `yaml:"runAsUser"`
	RunAsGroup     int64   `yaml:"runAsGroup"`
	FSGroup        int64   `yaml:"fsGroup"`
	SeccompProfile seccomp `yaml:"seccompProfile"`
}

type seccomp struct {
	Type string `yaml:"type"`
}

type container struct {
	Name       string    `yaml:"name"`
	Image      string    `yaml:"image"`
	WorkingDir string    `yaml:"workingDir"`
	Args       []string  `yaml:"args"`
	Env        []EnvVar  `yaml:"env,omitempty"`
	EnvFrom    []envFrom `yaml:"envFrom,omitempty"`
	Resources  struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	} `yaml:"resources"`
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct {
			Drop []string `yaml:"drop,flow"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	VolumeMounts []volumeMount `yaml:"volumeMounts"`
}

type envFrom struct {
	SecretRef nameRef `yaml:"secretRef"`
}

type nameRef struct {
	Name string `yaml:"name"`
}

type volumeMount struct {
	Name      string `yaml:"name"`
	MountPath string `yaml:"mountPath"`
}

type volume struct {
	Name     string    `yaml:"name"`
	EmptyDir *struct{} `yaml:"emptyDir,omitempty"`
	Claim    *claim    `yaml:"persistentVolumeClaim,omitempty"`
}

type claim struct {
	ClaimName string `yaml:"claimName"`
}
