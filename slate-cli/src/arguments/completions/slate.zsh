#compdef slate
# Completions of slate for zsh.
_slate() {
    local -a found whole part
    found=("${(@f)$(${words[1]} complete "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null)}")
    whole=(${found:#*[/:]})
    part=(${(M)found:#*[/:]})
    (( ${#whole} )) && compadd -- $whole
    (( ${#part} )) && compadd -S '' -- $part
}
if [ "$funcstack[1]" = "_slate" ]; then
    _slate "$@"
else
    compdef _slate slate
fi
