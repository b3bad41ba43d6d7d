#!/bin/sh
# The rights of one context in Kafka, for brokers whose authoriser denies what no rule allows. To run it again is
# harmless; it takes no right away.
#
#   deploy/kafka-acls.sh --bootstrap-server kafka-1:9093 --command-config admin.properties \
#       --context catalog --processor catalog-processor --client shop --client back-office --operator catalog-operator
#
#   --processor  executes commands: reads commands as a member of the group, writes replies, events and dead letters
#   --client     sends commands and reads the replies; may be given more than once, as may the others
#   --operator   makes the topics (processor topics --create, serve --topics), and reads and sends again dead letters
#   --group      the consumer group. Default: CONTEXT.processor
#
# Users are Kafka's principals of type User: the name of a SASL login, or with TLS alone the certificate's whole subject.
# A client can write any command to the topic and claim any caller in it: see docs/security.md.
#
# kafka-acls.sh of Kafka's own bin directory is looked for in PATH; KAFKA_ACLS names another one.
set -eu

usage() {
    sed -n '2,/^set -eu/p' "$0" | sed -e '/^set -eu/d' -e 's/^# \{0,1\}//' >&2
    exit 2
}

acls=${KAFKA_ACLS:-kafka-acls.sh}
server='' config='' context='' group='' processors='' clients='' operators=''
while [ $# -gt 1 ]; do
    case $1 in
    --bootstrap-server) server=$2 ;;
    --command-config) config=$2 ;;
    --context) context=$2 ;;
    --group) group=$2 ;;
    --processor) processors="$processors --allow-principal=User:$2" ;;
    --client) clients="$clients --allow-principal=User:$2" ;;
    --operator) operators="$operators --allow-principal=User:$2" ;;
    *) usage ;;
    esac
    shift 2
done
[ $# -eq 0 ] && [ -n "$server" ] && [ -n "$context" ] && [ -n "$processors$clients$operators" ] || usage
: "${group:=$context.processor}"

# allow PRINCIPALS ARGUMENTS… adds one rule, if there is anybody to add it for. Names of users hold no spaces here.
allow() {
    principals=$1
    shift
    [ -n "$principals" ] || return 0
    # shellcheck disable=SC2086 # the principals are words
    "$acls" --bootstrap-server "$server" ${config:+--command-config "$config"} --add $principals "$@"
}

# Describe comes with read and with write. DescribeConfigs lets the processor see that its topics are as declared.
allow "$processors" --operation Read --operation DescribeConfigs --topic "$context.commands"
allow "$processors" --operation Write --operation DescribeConfigs --topic "$context.events" --topic "$context.dead-letters"
# The context's reply topic and those of callers who want one of their own: CONTEXT.replies.NAME.
allow "$processors" --operation Write --operation DescribeConfigs --topic "$context.replies"
allow "$processors" --operation Write --resource-pattern-type prefixed --topic "$context.replies."
allow "$processors" --operation Read --group "$group"

allow "$clients" --operation Write --topic "$context.commands"
allow "$clients" --operation Read --topic "$context.replies"
allow "$clients" --operation Read --resource-pattern-type prefixed --topic "$context.replies."

for topic in commands replies events dead-letters; do
    set -- "$@" --topic "$context.$topic"
done
allow "$operators" --operation Create --operation Describe --operation DescribeConfigs "$@"
allow "$operators" --operation Read --topic "$context.dead-letters"
allow "$operators" --operation Write --topic "$context.commands"
