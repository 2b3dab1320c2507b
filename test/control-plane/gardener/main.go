// Parts of Gardener as programs: each answers every line of standard input, a JSON document, with a line on standard output.
//
//	gardener worker         from a Shoot to the Worker that gardenlet writes for it
//	gardener maintenance    what a maintenance window does to a Shoot
//	gardener worker-client  gardenlet's client for Workers, on a cluster
//	gardener installation   what gardener-operator and gardenlet make of our charts
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	log.SetLogger(logr.Discard())
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("which program? worker, maintenance, worker-client or installation")
	}
	switch arguments[0] {
	case "worker":
		translator, err := newTranslator()
		if err != nil {
			return err
		}
		return answerLines(translator.answer)
	case "maintenance":
		registerFeatureGates()
		return answerLines(maintain)
	case "worker-client":
		client, err := newWorkerClient(arguments[1:])
		if err != nil {
			return err
		}
		return answerLines(client.answer)
	case "installation":
		return answerLines(install)
	default:
		return fmt.Errorf("no program %q", arguments[0])
	}
}

// answerLines answers each line of standard input. What is wrong with a line is an answer too: {"error": text}.
func answerLines[Question, Answer any](answer func(Question) (Answer, error)) error {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	answers := json.NewEncoder(os.Stdout)
	questions := json.NewDecoder(lines)
	for questions.More() {
		var question Question
		if err := questions.Decode(&question); err != nil {
			return fmt.Errorf("reading a question: %w", err)
		}
		if err := answers.Encode(answered(question, answer)); err != nil {
			return err
		}
	}
	return nil
}

func answered[Question, Answer any](question Question, answer func(Question) (Answer, error)) (result any) {
	defer func() {
		if cause := recover(); cause != nil {
			result = failure{Error: fmt.Sprint(cause), Panics: true}
		}
	}()
	answered, err := answer(question)
	if err != nil {
		return failure{Error: err.Error()}
	}
	return answered
}

type failure struct {
	Error  string `json:"error"`
	Panics bool   `json:"panics,omitempty"`
}
