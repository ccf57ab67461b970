# Completions of slate for bash.
_slate() {
    local line=${COMP_LINE:0:COMP_POINT} candidate
    local word=${line##*[[:space:]]}
    # bash completes what follows a colon as a word of its own.
    local colon=
    [[ $COMP_WORDBREAKS == *:* ]] && colon=${word%"${word##*:}"}
    COMPREPLY=()
    while IFS= read -r candidate; do
        candidate=${candidate#"$colon"}
        printf -v candidate %q "$candidate"
        [[ $candidate == *[/:] ]] || candidate+=' '
        COMPREPLY+=("$candidate")
    done < <("${COMP_WORDS[0]}" complete "$line" 2>/dev/null)
}
complete -o nospace -F _slate slate
