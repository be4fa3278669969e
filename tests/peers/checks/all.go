package checks

import "slices"

// All returns every check, in the order in which the results are printed.
func All() []Check {
	return slices.Concat(
		clientChecks,
		kindChecks,
		patchChecks,
		applyChecks,
		listChecks,
		watchChecks,
		informerChecks,
		discoveryChecks,
		definitionChecks,
		subresourceChecks,
		podChecks,
		accessChecks,
		errorChecks,
		eventChecks,
		electionChecks,
		admissionChecks,
		conversionChecks,
		managerChecks,
		controllerChecks,
		envtestChecks,
	)
}
